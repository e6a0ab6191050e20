-- retry: in flight -> delayed, after a failure.
-- Lanes: the job's own.   ARGV[5] 1 for a repeat   ARGV[6] id   ARGV[7] token   ARGV[8] delay_ms
-- ARGV[9] digest of the traceback   ARGV[10] trail record   ARGV[11] the same without the traceback   ARGV[12] reason
-- ARGV[13] ms it ran ('' for unknown)
-- Output: 1 done | 0 done already (a repeat, and the newest trail record is this lease's) | -1 the lease is lost
local id, lane, lease = ARGV[6], lanes[order[1]], lease_of(ARGV[6])
if not lease or lease.token ~= ARGV[7] then
  return ARGV[5] == '1' and last_token(id) == ARGV[7] and 0 or -1
end
call('ZCARD', lane.delayed) -- a foreign value there is an error now, before the first write
local due = text(due_after(tonumber(ARGV[8])))
write_trail(lease, ARGV[9], ARGV[10], ARGV[11])
write_attempts(lease, lease.attempt, lease.crashes)
end_lease(lease)
call('ZADD', lane.delayed, due, id)
if call('ZRANGE', lane.delayed, 0, 0)[1] == id then push_token(wake_ticker) end
if audited == 'all' then
  emit('retry', 'worker:' .. lease.worker, id, lane.name,
    {head = head_of(call('HGET', jobs, id)), outcome = 'delayed', reason = ARGV[12]})
end
count('retried', lane.name)
observe('run', lane.name, tonumber(ARGV[13]))
write_counts()
return 1
