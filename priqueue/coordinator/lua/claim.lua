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
      answer[#answer + 1] = {id, call('HGET', jobs, id), lease.lane, lease.attempt, lease.crashes,
        text(lease.deadline), text(lease.deadline - lease_ms), is_suspect(id)}
    end
  end
  return answer
end
record = cjson.decode(record)
if record.drain then return {'draining'} end
for _, key in ipairs({letters, picker, claims, heartbeats}) do call('HLEN', key) end -- as checks.lua does
local room = math.min(tonumber(ARGV[7]), record.concurrency - tonumber(call('HGET', slots, worker) or 0))
local pool, ids, ghosts = pool_of(record.lanes, ARGV[9]), {}, 0
if room <= 0 then answer[1] = 'full' end
while #ids < room and ghosts < 1000 do
  local lane, full = pick(pool)
  if not lane then break end
  local id = call('LPOP', lane.list)
  lane.length = lane.length - 1
  local envelope = call('HGET', jobs, id)
  if not envelope or call('HEXISTS', inflight, id) + call('HEXISTS', letters, id) > 0 then -- not ready: the pick goes back
    ghosts, lane.credit = ghosts + 1, lane.credit + 1
    count('ghosts', lane.name)
  else
    local failures, crashes = string.match(call('HGET', attempts, id) or '', '^(%d+) (%d+)')
    local lease = {id = id, worker = worker, token = claim_id, lane = lane.name,
      attempt = (failures or 0) + 1, crashes = (crashes or 0) + 0}
    local ready_since = take_since(id, lane.name)
    write_lease(lease, now + lease_ms)
    if audited == 'all' then
      emit('claim', 'worker:' .. worker, id, lane.name, {head = head_of(envelope), outcome = 'in flight'})
    end
    count('picks', lane.name)
    if full then count('picks_full', lane.name) end
    table.insert(ids, id)
    answer[#answer + 1] = {id, envelope, lane.name, lease.attempt, lease.crashes, text(now + lease_ms), ready_since,
      is_suspect(id)}
  end
end
announce(pool)
if #ids > 0 then
  write_credits(pool)
  call('HINCRBY', slots, worker, #ids)
  call('HSET', claims, worker, claim_id .. ' ' .. table.concat(ids, ' '))
end
call('HSET', heartbeats, worker, text(now))
write_counts()
return answer
