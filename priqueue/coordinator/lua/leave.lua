-- leave: a worker that holds nothing is gone at once; one that still holds leases is left to the sweeper.
-- ARGV[5] worker
-- Output: 1 gone, or gone before | 0 it still holds leases
local worker = ARGV[5]
if tonumber(call('HGET', slots, worker) or 0) > 0 then return 0 end
local known = call('HEXISTS', workers, worker) == 1
for _, key in ipairs({workers, heartbeats, slots, claims}) do call('HDEL', key, worker) end
if known then emit('leave', 'worker:' .. worker, '', '', {outcome = 'gone'}) end
return 1
