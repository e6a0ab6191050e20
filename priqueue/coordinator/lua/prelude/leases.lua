-- leases: how every script reads, writes and ends leases.
-- Output: none; these functions. None of them fails after its first write
local function on_many(command, key, words) -- one command for many words; a script cannot unpack any number at once
  if #words == 0 then return words end
  if #words <= 1000 then return call(command, key, unpack(words)) end
  local answers = {}
  for at = 1, #words, 1000 do
    local answer = call(command, key, unpack(words, at, math.min(at + 999, #words)))
    if type(answer) == 'table' then for _, value in ipairs(answer) do answers[#answers + 1] = value end end
  end
  return answers
end
local function add_to(groups, name, word)
  groups[name] = groups[name] or {}
  table.insert(groups[name], word)
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
local function write_leases(leases, deadline)
  local records, ends, due = {}, {}, text(deadline)
  for at, lease in ipairs(leases) do
    ends[2 * at - 1], ends[2 * at] = due, lease.id
    records[2 * at - 1], records[2 * at] = lease.id, lease.worker .. ' ' .. lease.token .. ' ' .. due .. ' '
      .. lease.lane .. ' ' .. lease.attempt .. ' ' .. lease.crashes
  end
  on_many('HSET', inflight, records)
  on_many('ZADD', deadlines, ends)
end
local function write_lease(lease, deadline)
  write_leases({lease}, deadline)
end
local function end_leases(ids, worker)
  call('HINCRBY', slots, worker, -#ids) -- first: where a foreign value stands there, it fails before anything is done
  on_many('HDEL', inflight, ids)
  on_many('ZREM', deadlines, ids)
end
local function end_lease(lease)
  end_leases({lease.id}, lease.worker)
end
