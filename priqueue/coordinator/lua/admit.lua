-- admit: whether a caller's jobs may come in, before anything of them is written: room in their lanes, then its rate.
-- Lanes: the jobs' ones.   ARGV[5] 1 for a repeat   ARGV[6] call id   ARGV[7] caller   ARGV[8] hash of the caller
-- ARGV[9] us per job ('' for no limit)   ARGV[10] burst   ARGV[11] policy, for the counter   ARGV[12] number of jobs
-- ARGV[13..] per lane: how many of the jobs are for it, its MAX_READY ('' for none)
-- Output: {"ok", jobs left of the burst, us until there is no debt} | {"full", lane, its ready jobs}
--   | {"limited", us to wait, -1 where more than a burst was asked for at once}
-- Not flagged allow-oom: at the memory limit it is refused as enqueue is. A lost reply costs its caller one job at most.
for at, name in ipairs(order) do
  local most_ready, ready = tonumber(ARGV[12 + 2 * at]), call('LLEN', lanes[name].list)
  if most_ready and ready + tonumber(ARGV[11 + 2 * at]) > most_ready then
    count('full', name)
    write_counts()
    return {'full', name, ready}
  end
end
local rule = rule_of(ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11])
if not rule then return {'ok', '', ''} end
local answer = charge(rule, tonumber(ARGV[12]), ARGV[6], ARGV[5] == '1')
write_counts()
return answer
