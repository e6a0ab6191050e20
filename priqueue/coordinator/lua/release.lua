-- release: in flight -> ready, at the head of its lane | delayed; unrun, so no attempt is counted. Many leases.
-- ARGV[5] 1 for a repeat   ARGV[6] reason   ARGV[7] ms to wait, 0 for none   ARGV[8..] per lease: id, token
-- Output: per lease 1 done | 0 done already (a repeat, and the lease is no longer ours) | -1 the lease is lost
local answer, wait_ms = {}, tonumber(ARGV[7])
for at = #ARGV - 1, 8, -2 do -- from the last to the first, so that the head of the lane keeps their order
  local id, lease = ARGV[at], lease_of(ARGV[at])
  if lease and lease.token == ARGV[at + 1] then
    local lane = keys_of(lease.lane)
    call('LLEN', lane.list) -- a foreign value there is an error now, before this lease is touched
    call('ZCARD', lane.delayed)
    end_lease(lease)
    if wait_ms > 0 then
      call('ZADD', lane.delayed, text(due_after(wait_ms)), id)
      push_token(wake_ticker)
    else
      call('LPUSH', lane.list, id)
      call('HSET', since, id, now_text)
      wake_lane(lease.lane)
    end
    if audited == 'all' then
      emit('release', 'worker:' .. lease.worker, id, lease.lane, {head = head_of(call('HGET', jobs, id)),
        outcome = wait_ms > 0 and 'delayed' or 'ready', reason = ARGV[6]})
    end
    count('released', lease.lane)
    table.insert(answer, 1, 1)
  else
    table.insert(answer, 1, ARGV[5] == '1' and 0 or -1)
  end
end
write_counts()
return answer
