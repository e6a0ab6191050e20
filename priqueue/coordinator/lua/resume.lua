-- resume: the picker takes from this lane again.
-- ARGV[5] call id   ARGV[6] lane   ARGV[7] caller   ARGV[8] reason   ARGV[9] 1 to end only a pause whose time is over
-- Output: 1 done | 0 it was not paused, or its time is not over.   A repeat gets the first answer
local before = answer_before(ARGV[5])
if before then return before end
local pause = call('HGET', paused, ARGV[6])
if not pause then return 0 end
local until_ms = cjson.decode(pause).until_ms
if ARGV[9] == '1' and (not until_ms or until_ms > now) then return 0 end
call('HDEL', paused, ARGV[6])
if redis.pcall('LLEN', keys_of(ARGV[6]).list) ~= 0 then wake_lane(ARGV[6]) end
emit('resume', ARGV[7], '', ARGV[6], {outcome = 'resumed', reason = ARGV[8]})
return keep_answer(ARGV[5], 1)
