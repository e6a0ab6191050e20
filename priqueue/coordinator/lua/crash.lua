-- crash: in flight -> ready, at the head of its lane and marked as suspect | dead at max_crashes. The worker lives, but
-- the process in which this job alone ran has died.
-- ARGV[5] 1 for a repeat   ARGV[6] id   ARGV[7] token   ARGV[8] deaths it is guilty of   ARGV[9] max_crashes
-- ARGV[10] trail record   ARGV[11] reason
-- Output: 1 done | 0 done already (a repeat, and the newest trail record is this lease's) | -1 the lease is lost
local id, lease = ARGV[6], lease_of(ARGV[6])
if not lease or lease.token ~= ARGV[7] then
  return ARGV[5] == '1' and last_token(id) == ARGV[7] and 0 or -1
end
check_letters()
call('LLEN', keys_of(lease.lane).list)
lease.head, lease.crashes = head_of(call('HGET', jobs, id)), lease.crashes + tonumber(ARGV[8])
for _ = 1, tonumber(ARGV[8]) do write_trail(lease, '0', ARGV[10]) end
after_crashes({lease}, tonumber(ARGV[9]), ' s')
emit('crash', 'worker:' .. lease.worker, id, lease.lane,
  {head = lease.head, outcome = lease.outcome, reason = ARGV[11]})
count('crashed', lease.lane, tonumber(ARGV[8]))
write_counts()
return 1
