-- trim: the entries of dead that stand for no letter leave the list; its order stays. Nothing happens to a job.
-- A pass takes what dead held when it began from its tail, the oldest first: what still stands for a letter goes to the
-- head of kept. So dead followed by kept is the whole order at any moment. What was buried meanwhile follows unread:
-- an id that died again has its older entries, the stale ones, in this pass, and its new one is left to the next.
-- At last kept becomes dead. Any number of sweepers go on with the same pass.
-- ARGV[5] limit of entries to look at
-- Output: how many entries left. A pass begins when an eighth is stale, or when one call can do it all
local limit = math.min(tonumber(ARGV[5]), 1000)
local alive, newer, older = call('HLEN', letters), call('LLEN', dead), call('LLEN', kept)
call('HLEN', holes) -- a foreign value at a key we write is an error now
if alive == 0 then
  call('UNLINK', dead, kept, holes, trim)
  return newer + older
end
local unread = tonumber(call('GET', trim))
if not unread then
  local stale = newer - alive
  if stale <= 0 or (newer > limit and stale * 8 < newer) then return 0 end
  unread = newer
end
local ids = unread > 0 and call('RPOP', dead, math.min(limit, unread)) or {}
local stays = {}
for _, id in ipairs(ids) do
  if call('HEXISTS', holes, id) == 1 then
    if call('HINCRBY', holes, id, -1) <= 0 then call('HDEL', holes, id) end
  elseif call('HEXISTS', letters, id) == 1 then
    stays[#stays + 1] = id
  end
end
local left = #ids - #stays
unread = unread - #ids
if unread == 0 and limit > #ids then
  for _, id in ipairs(call('RPOP', dead, limit - #ids) or {}) do stays[#stays + 1] = id end
end
if #stays > 0 then call('LPUSH', kept, unpack(stays)) end
if call('LLEN', dead) == 0 then
  if call('EXISTS', kept) == 1 then call('RENAME', kept, dead) end
  call('DEL', trim)
else
  call('SET', trim, text(unread))
end
return left
