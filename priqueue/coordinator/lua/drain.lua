-- drain: a worker is asked to claim no more, to settle what it holds and to leave; its next claim tells it.
-- ARGV[5] call id   ARGV[6] worker   ARGV[7] caller   ARGV[8] reason
-- Output: 1 done | 0 there is no such worker.   A repeat gets the first answer
local before = answer_before(ARGV[5])
if before then return before end
local record = call('HGET', workers, ARGV[6])
if not record then return 0 end
record = cjson.decode(record)
record.drain = true
call('HSET', workers, ARGV[6], cjson.encode(record))
for _, lane in ipairs(record.lanes) do push_token(keys_of(lane).wake) end -- so that a waiting worker hears of it now
emit('drain', ARGV[7], '', '', {outcome = 'draining', reason = ARGV[8], input = ARGV[6]})
return keep_answer(ARGV[5], 1)
