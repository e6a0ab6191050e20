-- leases: how every script reads and ends a lease, and writes the trail.
-- Output: none; these functions. None of them fails after its first write
local function on_many(command, key, words) -- one command for many words; a script cannot unpack any number at once
  local answers = {}
  for at = 1, #words, 1000 do
    local answer = call(command, key, unpack(words, at, math.min(at + 999, #words)))
    if type(answer) == 'table' then for _, value in ipairs(answer) do answers[#answers + 1] = value end end
  end
  return answers
end
local function lease_in(record, id)
  local worker, token, deadline, lane, attempt, crashes =
    string.match(record or '', '^(%S+) (%S+) (%d+) (%S+) (%d+) (%d+)$')
  return worker and {id = id, worker = worker, token = token, deadline = tonumber(deadline), lane = lane,
    attempt = tonumber(attempt), crashes = tonumber(crashes)}
end
local function lease_of(id)
  return lease_in(call('HGET', inflight, id), id)
end
local function write_leases(leases, deadline) -- by id
  local records, ends = {}, {}
  for id, lease in pairs(leases) do
    ends[#ends + 1], ends[#ends + 2] = text(deadline), id
    records[#records + 1], records[#records + 2] = id, table.concat(
      {lease.worker, lease.token, text(deadline), lease.lane, text(lease.attempt), text(lease.crashes)}, ' ')
  end
  on_many('HSET', inflight, records)
  on_many('ZADD', deadlines, ends)
end
local function write_lease(lease, deadline)
  write_leases({[lease.id] = lease}, deadline)
end
local function end_leases(ids, worker)
  on_many('HDEL', inflight, ids)
  on_many('ZREM', deadlines, ids)
  call('HINCRBY', slots, worker, -#ids)
end
local function end_lease(lease)
  end_leases({lease.id}, lease.worker)
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
