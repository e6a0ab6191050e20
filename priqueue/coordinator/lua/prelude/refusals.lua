-- refusals: what the limits refuse is counted by caller, and becomes one audit event when a minute is over. The event is
-- written by the caller's next refusal, or by report.lua; no refusal is left out.
-- Output: none; note_refusal and tell_refusals
local function is_over(since_ms) -- one in the future is what a clock that was set back has left
  return since_ms + 60000 <= now or since_ms > now
end
local function tell_refusals(caller)
  local since_ms, number = call('ZSCORE', refusals, caller), call('HGET', refused, caller)
  call('ZREM', refusals, caller)
  call('HDEL', refused, caller)
  if number then
    emit('refuse', caller, '', '', {outcome = 'refused', reason = number .. ' over the rate limit since '
      .. text(tonumber(since_ms)) .. ' ms'})
  end
end
local function since_of(caller)
  return tonumber(call('ZSCORE', refusals, caller))
end
local function note_refusal(caller, number) -- beyond a thousand callers a minute, the rest of a kind share one count
  if not is_audited(caller) then return end
  if not since_of(caller) and call('ZCARD', refusals) >= 1000 then
    caller = (string.match(caller, '^%l+:') or '') .. '*'
  end
  local since_ms = since_of(caller)
  if since_ms and is_over(since_ms) then
    tell_refusals(caller)
    since_ms = nil
  end
  if not since_ms then call('ZADD', refusals, now_text, caller) end
  call('HINCRBY', refused, caller, number)
end
