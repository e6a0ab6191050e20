-- trails: what is kept of a job's failed and crashed attempts: their number, and a record of each.
-- Output: none; last_token, write_trail, write_attempts and attempts_in. None of them fails after its first write
local function last_token(id) -- a trail record begins "token digest at_ms "; a crash has no digest and was not settled
  return string.match(call('LINDEX', prefix .. 'trail:' .. id, -1) or '', '^(%S+) %x')
end
local function write_trail(lease, digest, record, short) -- pcall: one job's trail must not hold up the others
  local trail = prefix .. 'trail:' .. lease.id
  local newest = short and redis.pcall('LINDEX', trail, -1)
  local before = string.match(type(newest) == 'string' and newest or '', '^%S+ (%S+)')
  if before == digest then record = short end -- the same traceback again is said, not repeated
  local length = redis.pcall('RPUSH', trail, table.concat({lease.token, digest, now_text, record}, ' '))
  if type(length) == 'number' and length > 25 then call('LTRIM', trail, -25, -1) end
end
local function write_attempts(lease, failures, crashes)
  call('HSET', attempts, lease.id, text(failures) .. ' ' .. text(crashes))
end
local function attempts_in(record) -- failures, crashes, and 1 for an "s" after them: a process died of it, and of it alone
  if not record then return 0, 0, 0 end
  local failures, crashes, mark = string.match(record, '^(%d+) (%d+) ?(s?)')
  return tonumber(failures or 0), tonumber(crashes or 0), mark == 's' and 1 or 0
end
