-- register: a worker says what it is; it may claim from now on. Again under the same id: the new record counts.
-- ARGV[5] call id   ARGV[6] worker   ARGV[7] JSON: lanes in priority order, concurrency, host, pid, version
-- Output: 1.   A repeat changes nothing
local before = answer_before(ARGV[5])
if before then return before end
local record = cjson.decode(ARGV[7])
record.since_ms = now
call('HSET', workers, ARGV[6], cjson.encode(record))
call('HSET', heartbeats, ARGV[6], now_text)
emit('register', 'worker:' .. ARGV[6], '', '', {input = ARGV[7]})
return keep_answer(ARGV[5], 1)
