-- enqueue: nothing -> ready | delayed.   Many jobs of one lane, in their order.
-- Lanes: the jobs' one.   ARGV[5..] per job: id, envelope, delay_ms ('' if absolute), run_at_ms ('' if relative),
--   input for the audit event, mark ('' for none): "callerhash:keyhash digest" of an idempotency key and its content
-- Output: per job 1 accepted | 0 it came in before, so this is a repeat | the id of the job that came in under this mark
--   | -1 the mark stands for other content
-- Not flagged allow-oom: at the memory limit this script is refused before it runs.
local lane = lanes[order[1]]
call('LLEN', lane.list) -- a foreign value there is an error now, before the first write
call('ZCARD', lane.delayed)
local answer, ready = {}, 0
for at = 5, #ARGV, 6 do
  local id, envelope, delay_ms, run_at_ms = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local due = delay_ms and due_after(delay_ms) or run_at_ms
  local mark, digest = string.match(ARGV[at + 5], '^(%S+) (%S+)$')
  local earlier, accepted = mark and marked(mark, digest, id), 0
  if not earlier then accepted = call('HSETNX', jobs, id, envelope) end
  if accepted == 1 then
    local head = head_of(envelope)
    if mark then call('SET', prefix .. 'once:' .. mark, digest .. ' ' .. id, 'EX', 86400) end
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
  answer[#answer + 1] = earlier or accepted
end
if ready > 0 then wake_lane(lane.name) end
write_counts()
return answer
