-- admit: whether a caller's jobs may come in, before anything of them is written: room in their lanes, then its rate.
-- The rate is GCRA: of a caller is known when it will have made up for all that was admitted, its debt at most a burst.
-- Lanes: the jobs' ones.   ARGV[5] 1 for a repeat   ARGV[6] call id   ARGV[7] caller   ARGV[8] hash of the caller
-- ARGV[9] number of jobs   ARGV[10] us per job ('' for no limit)   ARGV[11] burst   ARGV[12] policy, for the counter
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
local step_us, burst, number = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[9])
if not step_us then return {'ok', '', ''} end
local key, most_us = prefix .. 'limit:' .. ARGV[8], step_us * burst
local owed, last = string.match(call('GET', key) or '', '^(%S+) (%S+)$')
-- A debt beyond a burst is what a clock that was set back, or a limit that was changed, has left: it is cut to one.
local paid_us = math.min(math.max(tonumber(owed) or 0, now_us), now_us + most_us)
local is_cut = (tonumber(owed) or 0) > now_us + most_us
local function keep(until_us, id) -- a minute longer than it counts
  call('SET', key, string.format('%.3f', until_us) .. ' ' .. id, 'PX', text((until_us - now_us) / 1000 + 60000))
end
local done_before = ARGV[5] == '1' and last == ARGV[6]
local debt_us = paid_us - now_us + (done_before and 0 or step_us * number)
if debt_us > most_us + 0.5 then -- half a microsecond is what rounding makes of a full burst
  call('ZCARD', refusals)
  call('HLEN', refused) -- a foreign value there is an error now, before the first write
  if is_cut then keep(paid_us, last) end
  count('refused', ARGV[12], number)
  note_refusal(ARGV[7], number)
  write_counts()
  return {'limited', number > burst and '-1' or text(math.ceil(debt_us - most_us))}
end
if not done_before then keep(now_us + debt_us, ARGV[6]) end
return {'ok', text(math.floor((most_us - debt_us) / step_us + 0.001)), text(math.ceil(debt_us))}
