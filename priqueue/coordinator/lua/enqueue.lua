-- enqueue: nothing -> ready | delayed.   Many jobs of one lane, in their order.
-- Lanes: the jobs' one.   ARGV[5] caller   ARGV[6] hash of the caller   ARGV[7] us per job ('' for no limit, or where the
-- jobs were admitted before)   ARGV[8] burst   ARGV[9] policy   ARGV[10] MAX_READY ('' for none, or admitted before)
-- ARGV[11..] per job: id, envelope, delay_ms ('' if absolute), run_at_ms ('' if relative), input for the audit event,
--   mark ('' for none): "callerhash:keyhash digest" of an idempotency key and its content
-- Output: per job 1 accepted | 0 it came in before, so this is a repeat | the id of the job that came in under this mark
--   | -1 the mark stands for other content | what admit answers: {"ok", …} accepted, {"full", …}, {"limited", …} refused
-- Not flagged allow-oom: at the memory limit this script is refused before it runs.
local lane, answer, ready = lanes[order[1]], {}, 0
local length = call('LLEN', lane.list) -- a foreign value there is an error now, before the first write
call('ZCARD', lane.delayed) -- at `jobs` it is one, too: HSETNX is the first write
local rule, most_ready = rule_of(ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]), tonumber(ARGV[10])
local function admission(id) -- what admit would answer; nothing where nothing limits, and a repeat is not charged
  if not (rule or most_ready) or call('HEXISTS', jobs, id) == 1 then return end
  if most_ready and length + ready >= most_ready then
    count('full', lane.name)
    return {'full', lane.name, length + ready}, true
  end
  if rule then return charge(rule, 1, id) end
end
for at = 11, #ARGV, 6 do
  local id, envelope, delay_ms, run_at_ms = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local due = delay_ms and due_after(delay_ms) or run_at_ms
  local mark, digest = string.match(ARGV[at + 5], '^(%S+) (%S+)$')
  local said, stays_out = mark and marked(mark, digest, id), true
  if not said then said, stays_out = admission(id) end
  if not stays_out and call('HSETNX', jobs, id, envelope) == 0 then said, stays_out = 0, true end
  if not stays_out then
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
  answer[#answer + 1] = said or 1
end
if ready > 0 then wake_lane(lane.name) end
write_counts()
return answer
