-- replace: a letter stays dead and says by which job it was replaced; that job, its edited copy, nothing -> ready.
-- Lanes: the copy's own.   ARGV[5] id of the letter   ARGV[6] id of the copy   ARGV[7] envelope of the copy
-- ARGV[8] caller   ARGV[9] reason   ARGV[10] the copy's input for the audit event
-- Output: the id by which the letter is replaced now: this copy's, also for a repeat, or that of one before it | '' there
--   is no such letter. Not flagged allow-oom: at the memory limit it is refused as enqueue is.
local id, copy, lane = ARGV[5], ARGV[6], lanes[order[1]]
check_letters()
call('LLEN', lane.list) -- a foreign value there is an error now, before the first write
local letter = letter_of(id)
if not letter then return '' end
if letter.replaced_by then return letter.replaced_by end
letter.replaced_by = copy
call('HSET', jobs, copy, ARGV[7])
call('RPUSH', lane.list, copy)
call('HSET', letters, id, cjson.encode(letter))
wake_lane(lane.name)
local head = head_of(ARGV[7])
emit('enqueue', head.caller, copy, lane.name, {head = head, input = ARGV[10], outcome = 'ready'})
emit('replace', ARGV[8], id, letter.lane,
  {head = head_of(call('HGET', jobs, id)), outcome = 'replaced by ' .. copy, reason = ARGV[9]})
count('enqueued', lane.name)
count('replaced', letter.lane)
write_counts()
return copy
