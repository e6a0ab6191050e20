-- promote: delayed -> ready, what is due, in due order.
-- Lanes: all, in priority order.   ARGV[5] limit over all lanes, 1000 at most   ARGV[6] caller
-- Output: how many moved. A lane whose keys hold foreign values is counted and stepped over; the others go on
local limit = math.min(tonumber(ARGV[5]), 1000)
local left = limit
for _, name in ipairs(order) do
  local lane, due = lanes[name], {}
  if left > 0 then due = redis.pcall('ZRANGEBYSCORE', lane.delayed, '-inf', now_text, 'WITHSCORES', 'LIMIT', 0, left) end
  if due.err or type(redis.pcall('LLEN', lane.list)) ~= 'number' then
    count('foreign', name)
  elseif #due > 0 then
    for at = 1, #due, 2 do
      local id = due[at]
      call('ZREM', lane.delayed, id)
      call('RPUSH', lane.list, id)
      call('HSET', since, id, now_text .. ' ' .. text(tonumber(due[at + 1])))
      if audited == 'all' then
        emit('promote', ARGV[6], id, name, {head = head_of(call('HGET', jobs, id)), outcome = 'ready'})
      end
    end
    count('promoted', name, #due / 2)
    wake_lane(name)
    left = left - #due / 2
  end
end
saw('ticker')
write_counts()
return limit - left
