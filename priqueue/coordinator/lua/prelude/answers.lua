-- answers: a call that cannot tell from the state whether it was done keeps its answer for some minutes under its call
-- id, which is drawn for each call and is the same in all its repeats.
-- Output: none; answer_before and keep_answer
local function answer_before(id) -- nil when this call was not done before
  local kept = call('GET', prefix .. 'answer:' .. id)
  return kept and cjson.decode(kept) or nil
end
local function keep_answer(id, answer)
  call('SET', prefix .. 'answer:' .. id, cjson.encode(answer), 'EX', 300)
  return answer
end
