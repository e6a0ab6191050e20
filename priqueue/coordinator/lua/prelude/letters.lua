-- letters: how scripts bury, what becomes of a job after a crash, and how a letter leaves the dead.
-- Output: none; these functions. None of them fails after its first write
local function write_letter(lease, head, reason) -- the number of causes is bounded: errors can have any name
  local cause = string.sub(reason .. ' ' .. head.handler, 1, 400)
  if call('HEXISTS', causes, cause) == 0 and call('HLEN', causes) >= 1000 then cause = 'other' end
  call('LPUSH', dead, lease.id)
  call('HSET', letters, lease.id, cjson.encode({lane = lease.lane, cause = cause, handler = head.handler,
    caller = head.caller, buried_at_ms = now}))
  redis.pcall('ZADD', prefix .. 'cause:' .. cause, text(now), lease.id)
  call('HINCRBY', causes, cause, 1)
  count('buried', lease.lane)
end
local function after_crash(lease, head, crashes, max_crashes, mark) -- "ready", at the head of its lane, or "dead"
  call('HSET', attempts, lease.id, text(lease.attempt - 1) .. ' ' .. text(crashes) .. mark)
  end_lease(lease)
  if crashes >= max_crashes then
    write_letter(lease, head, 'WorkerLost')
    return 'dead'
  end
  call('LPUSH', keys_of(lease.lane).list, lease.id)
  call('HSET', since, lease.id, text(now))
  wake_lane(lease.lane)
  return 'ready'
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
