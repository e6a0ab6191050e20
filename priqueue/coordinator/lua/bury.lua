-- bury: in flight -> dead, after a failure for good.
-- ARGV[5] 1 for a repeat   ARGV[6] id   ARGV[7] token   ARGV[8] error, by which letters are grouped
-- ARGV[9] digest of the traceback   ARGV[10] trail record   ARGV[11] the same without the traceback   ARGV[12] reason
-- ARGV[13] ms it ran ('' for unknown)
-- Output: 1 done | 0 done already (a repeat, and the newest trail record is this lease's) | -1 the lease is lost
local id, lease = ARGV[6], lease_of(ARGV[6])
if not lease or lease.token ~= ARGV[7] then
  return ARGV[5] == '1' and last_token(id) == ARGV[7] and 0 or -1
end
check_letters()
local head = head_of(call('HGET', jobs, id))
write_trail(lease, ARGV[9], ARGV[10], ARGV[11])
write_attempts(lease, lease.attempt, lease.crashes)
end_lease(lease)
write_letter(lease, head, ARGV[8])
observe('run', lease.lane, tonumber(ARGV[13]))
if ARGV[8] == 'BadSignature' then count('bad_signatures', lease.lane) end
emit('bury', 'worker:' .. lease.worker, id, lease.lane, {head = head, outcome = 'dead', reason = ARGV[12]})
write_counts()
return 1
