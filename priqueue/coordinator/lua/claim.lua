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
      local _, _, suspect = attempts_of(id)
      answer[#answer + 1] = {id, call('HGET', jobs, id), lease.lane, lease.attempt, lease.crashes,
        text(lease.deadline), text(lease.deadline - lease_ms), suspect}
    end
  end
  return answer
end
record = cjson.decode(record)
if record.drain then return {'draining'} end
for _, key in ipairs({letters, picker, claims, heartbeats}) do call('HLEN', key) end -- as checks.lua does
local room = math.min(tonumber(ARGV[7]), record.concurrency - tonumber(call('HGET', slots, worker) or 0))
local pool, ids, leases, ghosts = pool_of(record.lanes, ARGV[9]), {}, {}, 0
if room <= 0 then answer[1] = 'full' end
while #ids < room and ghosts < 1000 do
  local lane, full = pick(pool)
  if not lane then break end
  local id = call('LPOP', lane.list)
  lane.length = lane.length - 1
  local envelope = call('HGET', jobs, id)
  if not envelope or leases[id] or call('HEXISTS', inflight, id) + call('HEXISTS', letters, id) > 0 then
    -- It is not ready: the pick goes back.
    ghosts, lane.credit = ghosts + 1, lane.credit + 1
    count('ghosts', lane.name)
  else
    local failures, crashes, suspect = attempts_of(id)
    leases[id] = {worker = worker, token = claim_id, lane = lane.name, attempt = failures + 1, crashes = crashes}
    count('picks', lane.name)
    if full then count('picks_full', lane.name) end
    table.insert(ids, id)
    answer[#answer + 1] = {id, envelope, lane.name, failures + 1, crashes, text(now + lease_ms),
      take_since(id, lane.name), suspect}
  end
end
announce(pool)
if #ids > 0 then
  write_credits(pool)
  write_leases(leases, now + lease_ms)
  call('HINCRBY', slots, worker, #ids)
  call('HSET', claims, worker, claim_id .. ' ' .. table.concat(ids, ' '))
  for at = 2, audited == 'all' and #answer or 0 do
    local id, envelope, lane = unpack(answer[at], 1, 3)
    emit('claim', 'worker:' .. worker, id, lane, {head = head_of(envelope), outcome = 'in flight'})
  end
end
call('HSET', heartbeats, worker, text(now))
write_counts()
return answer
