-- enqueue: nothing -> ready | delayed.   Many jobs of one lane, in their order.
-- Lanes: the jobs' one.   ARGV[5..] per job: id, envelope, delay_ms ('' if absolute), run_at_ms ('' if relative),
--   input for the audit event
-- Output: per job 1 accepted | 0 it was in the store already, so this is a repeat
-- Not flagged allow-oom: at the memory limit this script, and this one alone, is refused before it runs.
local lane = lanes[order[1]]
call('LLEN', lane.list) -- a foreign value there is an error now, before the first write
call('ZCARD', lane.delayed)
local answer, ready = {}, 0
for at = 5, #ARGV, 5 do
  local id, envelope, delay_ms, run_at_ms = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local due = delay_ms and due_after(delay_ms) or run_at_ms
  local accepted = call('HSETNX', jobs, id, envelope)
  if accepted == 1 then
    local head = head_of(envelope)
    if due <= now then
      call('RPUSH', lane.list, id)
      ready = ready + 1
    else
      call('ZADD', lane.delayed, text(due), id)
      if call('ZRANGE', lane.delayed, 0, 0)[1] == id then push_token(wake_ticker) end
    end
    emit('enqueue', head.caller, id, lane.name,
      {head = head, input = ARGV[at + 4], outcome = due <= now and 'ready' or 'delayed'})
    count('enqueued', lane.name)
  end
  answer[#answer + 1] = accepted
end
if ready > 0 then wake_lane(lane.name) end
write_counts()
return answer
