-- claim: ready -> in flight, up to the worker's free slots, lane by lane as the picker says (picker.lua).
-- Lanes: all, in priority order.   ARGV[5] worker   ARGV[6] claim id, which becomes the token   ARGV[7] limit
-- ARGV[8] lease_ms   ARGV[9] weights, comma-separated, in the order of the lanes
-- Output: {"ok", {id, envelope, lane, attempt, crashes, deadline_ms, ready_since_ms, suspect 0|1}…} in pick order
--   | {"unregistered"} | {"draining"} | {"full"}.   A repeat of the worker's last claim id is answered with the same leases.
local worker, claim_id, lease_ms = ARGV[5], ARGV[6], tonumber(ARGV[8])
local record, answer = call('HGET', workers, worker), {'ok'}
if not record then return {'unregistered'} end
local given = call('HGET', claims, worker) or ''
if string.match(given, '^%S+') == claim_id then
  for id in string.gmatch(given, ' (%S+)') do
    local lease = lease_of(id)
    if lease and lease.token == claim_id then
      local _, _, suspect = attempts_in(call('HGET', attempts, id))
      answer[#answer + 1] = {id, call('HGET', jobs, id), lease.lane, lease.attempt, lease.crashes,
        text(lease.deadline), text(lease.deadline - lease_ms), suspect}
    end
  end
  return answer
end
record = cjson.decode(record)
if record.drain then return {'draining'} end
for _, key in ipairs({letters, claims, heartbeats}) do call('HLEN', key) end -- as checks.lua does
local room = math.min(tonumber(ARGV[7]), record.concurrency - tonumber(call('HGET', slots, worker) or 0))
if room <= 0 then answer[1] = 'full' end
local pool = pool_of(record.lanes, ARGV[9])
local picks, ids, envelopes = plan_ready(pool, room)
announce(pool)
if #picks > 0 then
  call('HINCRBY', slots, worker, #ids) -- first: where a foreign value stands there, it fails before anything is done
  local tries, times, deadline = on_many('HMGET', attempts, ids), on_many('HMGET', since, ids), now + lease_ms
  local leases, waited, deadline_text = {}, {}, text(deadline)
  for at, lane in ipairs(picks) do
    local failures, crashes, suspect = attempts_in(tries[at])
    leases[at] = {id = ids[at], worker = worker, token = claim_id, lane = lane.name, attempt = failures + 1,
      crashes = crashes}
    answer[at + 1] = {ids[at], envelopes[at], lane.name, failures + 1, crashes, deadline_text,
      observe_since(ids[at], times[at], lane.name), suspect}
    if times[at] then waited[#waited + 1] = ids[at] end
    if audited == 'all' then
      emit('claim', 'worker:' .. worker, ids[at], lane.name, {head = head_of(envelopes[at]), outcome = 'in flight'})
    end
  end
  take(pool)
  write_leases(leases, deadline)
  on_many('HDEL', since, waited)
  call('HSET', claims, worker, claim_id .. ' ' .. table.concat(ids, ' '))
end
call('HSET', heartbeats, worker, now_text)
write_counts()
return answer
