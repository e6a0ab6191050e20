-- steer: a run over many letters begins, stops, goes on or ends. It is kept for a week after its last step.
-- ARGV[5] call id   ARGV[6] run   ARGV[7] its new state: going, stopped, done   ARGV[8] caller
-- ARGV[9..] of a run that begins, per field: name, value; among them action, input, reason, number
-- Output: 1 done | 0 nothing changed: it is there already, it is gone, or it cannot get from its state to this one
local before = answer_before(ARGV[5])
if before then return before end
local key, state = prefix .. 'run:' .. ARGV[6], ARGV[7]
local was = call('HGET', key, 'state') or 'new'
local may = {new = {going = #ARGV > 8}, going = {stopped = true, done = true}, stopped = {going = true}, done = {}}
if not may[was][state] then return 0 end
if was == 'new' then
  for at = 9, #ARGV, 2 do call('HSET', key, ARGV[at], ARGV[at + 1]) end
  call('HSET', key, 'begun_ms', now_text)
end
call('HSET', key, 'state', state)
call('HSET', key, 'steered_by', ARGV[8])
call('HSET', key, 'steered_ms', now_text)
call('EXPIRE', key, 604800)
local run = call('HMGET', key, 'action', 'input', 'reason', 'done', 'number')
local came = string.format('%s: %sd %s of %s', state, run[1], run[4], run[5])
emit(run[1], ARGV[8], '', '', {head = {correlation = ARGV[6]}, input = run[2], reason = run[3],
  outcome = state == 'going' and 'intended' or came})
return keep_answer(ARGV[5], 1)
