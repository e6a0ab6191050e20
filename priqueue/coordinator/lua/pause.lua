-- pause: the picker skips this lane from now on; enqueue and what is in flight go on.
-- ARGV[5] call id   ARGV[6] lane   ARGV[7] caller   ARGV[8] reason   ARGV[9] ms it lasts ('' for until resumed)
-- Output: 1.   A repeat changes nothing
local before = answer_before(ARGV[5])
if before then return before end
local lasts_ms = tonumber(ARGV[9])
call('HSET', paused, ARGV[6], cjson.encode({caller = ARGV[7], reason = ARGV[8], since_ms = now,
  until_ms = lasts_ms and now + lasts_ms or nil}))
emit('pause', ARGV[7], '', ARGV[6], {outcome = 'paused', reason = ARGV[8]})
return keep_answer(ARGV[5], 1)
