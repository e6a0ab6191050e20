-- ack: in flight -> gone. Many leases; one that is lost does not hold up the others.
-- ARGV[5] 1 for a repeat   ARGV[6..] per lease: id, token, ms it ran ('' for unknown)
-- Output: per lease 1 done | 0 done already (a repeat, and the job is gone) | -1 the lease is lost, nothing changed
local answer = {}
for at = 6, #ARGV, 3 do
  local id, lease = ARGV[at], lease_of(ARGV[at])
  if lease and lease.token == ARGV[at + 1] then
    if audited == 'all' then
      emit('ack', 'worker:' .. lease.worker, id, lease.lane, {head = head_of(call('HGET', jobs, id)), outcome = 'done'})
    end
    end_lease(lease)
    call('HDEL', jobs, id)
    call('HDEL', attempts, id)
    call('UNLINK', prefix .. 'trail:' .. id)
    count('acked', lease.lane)
    observe('run', lease.lane, tonumber(ARGV[at + 2]))
    answer[#answer + 1] = 1
  else
    answer[#answer + 1] = ARGV[5] == '1' and call('HEXISTS', jobs, id) == 0 and 0 or -1
  end
end
write_counts()
return answer
