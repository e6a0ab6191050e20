-- reclaim: in flight -> ready, at the head of its lane | dead, when its lease lapsed: the worker is lost, a crash counts.
-- After a silence of more than one lease the leases get one more to be beaten first: the queue may have been the
-- one that was away. A deadline further off than one lease, left by a clock set back, is cut to one lease.
-- ARGV[5] limit, 1000 at most   ARGV[6] lease_ms   ARGV[7] max_crashes   ARGV[8] caller
-- Output: {number reclaimed, …of these buried, ms that the grace still holds}
local limit, lease_ms, max_crashes = math.min(tonumber(ARGV[5]), 1000), tonumber(ARGV[6]), tonumber(ARGV[7])
local last, hold = string.match(call('GET', sweep) or '', '^(%d+) (%d+)$')
last, hold = tonumber(last) or now, math.min(tonumber(hold) or 0, now + lease_ms)
if now - last > lease_ms then hold = now + lease_ms end
for _, id in ipairs(call('ZRANGEBYSCORE', deadlines, '(' .. text(now + lease_ms), '+inf', 'LIMIT', 0, limit)) do
  local lease = lease_of(id)
  if lease then write_lease(lease, now + lease_ms) else call('ZREM', deadlines, id) end
end
call('SET', sweep, now_text .. ' ' .. text(hold))
saw('sweeper')
if now < hold then return {0, 0, hold - now} end
check_letters()
local ids = call('ZRANGEBYSCORE', deadlines, '-inf', now_text, 'LIMIT', 0, limit)
local records, envelopes = on_many('HMGET', inflight, ids), on_many('HMGET', jobs, ids)
local lapsed, held_up, is_list, buried = {}, {}, {}, 0
for at, id in ipairs(ids) do
  local lease = lease_in(records[at], id)
  local lane = lease and lease.lane or ''
  if is_list[lane] == nil then is_list[lane] = type(redis.pcall('LLEN', keys_of(lane).list)) == 'number' end
  if not lease or not envelopes[at] then -- an index without its lease, a lease without its job: nothing to give back
    if lease then end_lease(lease) end
    call('ZREM', deadlines, id)
    count('ghosts', lane)
  elseif lease.deadline > now then
    call('ZADD', deadlines, text(lease.deadline), id)
  elseif not is_list[lane] then
    held_up[#held_up + 1] = lease
    count('foreign', lane)
  else
    lease.head, lease.crashes = head_of(envelopes[at]), lease.crashes + 1
    lapsed[#lapsed + 1] = lease
  end
end
write_leases(held_up, now + lease_ms) -- once more, so that a batch full of these does not hold up the other lanes
after_crashes(lapsed, max_crashes, '')
for _, lease in ipairs(lapsed) do
  write_trail(lease, '-', string.format('{"error":"WorkerLost","crash":true,"attempt":%d,"worker":"%s","message":'
    .. '"the worker was lost: no beat for %d ms","traceback":""}', lease.attempt, lease.worker, lease_ms))
  emit('reclaim', ARGV[8], lease.id, lease.lane,
    {head = lease.head, outcome = lease.outcome, reason = 'worker lost: ' .. lease.worker})
  count('reclaimed', lease.lane)
  buried = buried + (lease.outcome == 'dead' and 1 or 0)
end
write_counts()
return {#lapsed, buried, 0}
