-- runs: many letters that a person requeues or purges in steps. A step is done only where the run stands, and moves it on
-- in the same script, so that of two who do the same step one does it and the other changes nothing.
-- Output: none; run_stands and run_on. A call without a run has '' for its id
local function run_stands(id, cursor)
  if id == '' then return true end
  local run = call('HMGET', prefix .. 'run:' .. id, 'state', 'cursor', 'next_ms')
  return run[1] == 'going' and run[2] == cursor and tonumber(run[3]) <= now
end
local function run_on(id, cursor, done, alone)
  if id == '' then return end
  local key = prefix .. 'run:' .. id
  local per_s = tonumber(call('HGET', key, 'per_s')) -- 0 is as fast as it goes
  call('HSET', key, 'cursor', cursor)
  call('HINCRBY', key, 'done', done)
  call('HINCRBY', key, 'alone', alone)
  if per_s > 0 then call('HSET', key, 'next_ms', text(now + math.ceil(done * 1000 / per_s))) end
  call('EXPIRE', key, 604800)
end
