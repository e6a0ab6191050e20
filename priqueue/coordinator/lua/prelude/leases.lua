-- leases: how every script reads and ends a lease, and writes the trail.
-- Output: none; these functions. None of them fails after its first write
local function lease_of(id)
  local record = call('HGET', inflight, id)
  local worker, token, deadline, lane, attempt, crashes =
    string.match(record or '', '^(%S+) (%S+) (%d+) (%S+) (%d+) (%d+)$')
  return worker and {id = id, worker = worker, token = token, deadline = tonumber(deadline), lane = lane,
    attempt = tonumber(attempt), crashes = tonumber(crashes)}
end
local function write_lease(lease, deadline)
  call('HSET', inflight, lease.id, table.concat(
    {lease.worker, lease.token, text(deadline), lease.lane, text(lease.attempt), text(lease.crashes)}, ' '))
  call('ZADD', deadlines, text(deadline), lease.id)
end
local function end_lease(lease)
  call('HDEL', inflight, lease.id)
  call('ZREM', deadlines, lease.id)
  call('HINCRBY', slots, lease.worker, -1)
end
local function last_token(id) -- a trail record begins "token digest at_ms "; a crash has no digest and was not settled
  return string.match(call('LINDEX', prefix .. 'trail:' .. id, -1) or '', '^(%S+) %x')
end
local function write_trail(lease, digest, record, short)
  local trail = prefix .. 'trail:' .. lease.id
  local newest = redis.pcall('LINDEX', trail, -1) -- pcall: one job's trail must not hold up the others
  local before = string.match(type(newest) == 'string' and newest or '', '^%S+ (%S+)')
  if short and before == digest then record = short end -- the same traceback again is said, not repeated
  redis.pcall('RPUSH', trail, table.concat({lease.token, digest, text(now), record}, ' '))
  redis.pcall('LTRIM', trail, -25, -1)
end
local function write_attempts(lease, failures, crashes)
  call('HSET', attempts, lease.id, text(failures) .. ' ' .. text(crashes))
end
