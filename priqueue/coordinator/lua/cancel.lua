-- cancel: delayed | ready -> gone. The one script whose cost grows with a lane: it looks for a ready job in it.
-- Lanes: the job's own.   ARGV[5] call id   ARGV[6] id   ARGV[7] caller   ARGV[8] reason
-- Output: {'done'} | {'in flight', worker} | {'dead'} | {'gone'}: nothing changed.   A repeat gets the first answer
local before = answer_before(ARGV[5])
if before then return before end
local id, lane = ARGV[6], lanes[order[1]]
local envelope = call('HGET', jobs, id)
if not envelope then return {'gone'} end
if call('HEXISTS', inflight, id) == 1 then return {'in flight', (lease_of(id) or {}).worker or ''} end
if call('HEXISTS', letters, id) == 1 then return {'dead'} end
if call('ZREM', lane.delayed, id) == 0 and call('LREM', lane.list, 1, id) == 0 then return {'gone'} end
for _, key in ipairs({jobs, attempts, since}) do call('HDEL', key, id) end
call('UNLINK', prefix .. 'trail:' .. id)
emit('cancel', ARGV[7], id, lane.name, {head = head_of(envelope), outcome = 'gone', reason = ARGV[8]})
count('cancelled', lane.name)
write_counts()
return keep_answer(ARGV[5], {'done'})
