-- answers: a call that cannot tell from the state whether it was done keeps its answer for some minutes under its call
-- id, which is drawn for each call and is the same in all its repeats.
-- Output: none; answer_before, keep_answer and marked
local function answer_before(id) -- nil when this call was not done before
  local kept = call('GET', prefix .. 'answer:' .. id)
  return kept and cjson.decode(kept) or nil
end
local function keep_answer(id, answer)
  call('SET', prefix .. 'answer:' .. id, cjson.encode(answer), 'EX', 300)
  return answer
end
local function marked(mark, digest, id) -- what enqueue answers for an idempotency key; nil where it stands for no job yet
  local kept = redis.pcall('GET', prefix .. 'once:' .. mark)
  local content, earlier = string.match(type(kept) == 'string' and kept or '', '^(%S+) (%S+)$')
  if not content then return nil end
  return content ~= digest and -1 or earlier == id and 0 or earlier
end
