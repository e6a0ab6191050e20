-- limits: the rate of a caller. It is GCRA: of a caller is known when it will have made up for all that was admitted, its
-- debt at most a burst.
-- Output: none; rule_of and charge, for admit.lua and enqueue.lua
local function rule_of(caller, hash, step_us, burst, policy) -- us per job; nil where that is '', for no limit
  step_us, burst = tonumber(step_us), tonumber(burst)
  if not step_us then return nil end
  call('ZCARD', refusals)
  call('HLEN', refused) -- a foreign value there is an error now, before the first write
  return {caller = caller, key = prefix .. 'limit:' .. hash, step_us = step_us, burst = burst, most_us = step_us * burst,
    policy = policy}
end
local function keep_debt(rule, paid_us, id) -- a minute longer than it counts
  call('SET', rule.key, string.format('%.3f', paid_us) .. ' ' .. id, 'PX', text((paid_us - now_us) / 1000 + 60000))
end
local function charge(rule, number, id, is_repeat) -- what admit.lua answers, and whether that is a refusal
  local owed, last = string.match(call('GET', rule.key) or '', '^(%S+) (%S+)$')
  -- A debt beyond a burst is what a clock that was set back, or a limit that was changed, has left: it is cut to one.
  local paid_us = math.min(math.max(tonumber(owed) or 0, now_us), now_us + rule.most_us)
  local is_cut = (tonumber(owed) or 0) > now_us + rule.most_us
  local done_before = is_repeat and last == id
  local debt_us = paid_us - now_us + (done_before and 0 or rule.step_us * number)
  if debt_us > rule.most_us + 0.5 then -- half a microsecond is what rounding makes of a full burst
    if is_cut then keep_debt(rule, paid_us, last) end
    count('refused', rule.policy, number)
    note_refusal(rule.caller, number)
    return {'limited', number > rule.burst and '-1' or text(math.ceil(debt_us - rule.most_us))}, true
  end
  if not done_before then keep_debt(rule, now_us + debt_us, id) end
  return {'ok', text(math.floor((rule.most_us - debt_us) / rule.step_us + 0.001)), text(math.ceil(debt_us))}, false
end
