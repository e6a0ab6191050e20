-- letters: how scripts bury, what becomes of a job after a crash, and how a letter leaves the dead.
-- Output: none; these functions. None of them fails after its first write
local function write_letter(lease, head, reason) -- the number of causes is bounded: errors can have any name
  local cause = string.sub(reason .. ' ' .. head.handler, 1, 400)
  if call('HEXISTS', causes, cause) == 0 and call('HLEN', causes) >= 1000 then cause = 'other' end
  call('LPUSH', dead, lease.id)
  call('HSET', letters, lease.id, cjson.encode({lane = lease.lane, cause = cause, handler = head.handler,
    caller = head.caller, buried_at_ms = now}))
  redis.pcall('ZADD', prefix .. 'cause:' .. cause, now_text, lease.id)
  call('HINCRBY', causes, cause, 1)
  count('buried', lease.lane)
end
local function after_crashes(leases, max_crashes, mark) -- all end; each outcome is "ready", at the head of its lane, or "dead"
  local tries, times, of_worker, of_lane = {}, {}, {}, {}
  for _, lease in ipairs(leases) do
    lease.outcome = lease.crashes < max_crashes and 'ready' or 'dead'
    tries[#tries + 1], tries[#tries + 2] = lease.id, lease.attempt - 1 .. ' ' .. lease.crashes .. mark
    add_to(of_worker, lease.worker, lease.id)
    if lease.outcome == 'ready' then
      add_to(of_lane, lease.lane, lease.id)
      times[#times + 1], times[#times + 2] = lease.id, now_text
    end
  end
  on_many('HSET', attempts, tries)
  for worker, ids in pairs(of_worker) do end_leases(ids, worker) end
  for lane, ids in pairs(of_lane) do
    on_many('LPUSH', keys_of(lane).list, ids)
    wake_lane(lane)
  end
  on_many('HSET', since, times)
  for _, lease in ipairs(leases) do
    if lease.outcome == 'dead' then write_letter(lease, lease.head, 'WorkerLost') end
  end
end
local function letter_of(id) -- nil where there is none, or a foreign value
  local ok, letter = pcall(cjson.decode, call('HGET', letters, id) or '')
  return ok and type(letter) == 'table' and letter.lane and letter.cause and letter.buried_at_ms and letter or nil
end
local function remove_letter(id, letter)
  call('HDEL', letters, id)
  call('HDEL', attempts, id)
  call('HINCRBY', holes, id, 1)
  redis.pcall('ZREM', prefix .. 'cause:' .. letter.cause, id)
  if call('HINCRBY', causes, letter.cause, -1) <= 0 then call('HDEL', causes, letter.cause) end
end
