-- checks: a foreign value at a key of ours is an error now, before the first write, as the server takes nothing back.
-- Output: none; check_letters, for the scripts that write letters
for _, key in ipairs({jobs, attempts, since, inflight, slots}) do call('HLEN', key) end
call('ZCARD', deadlines)
local function check_letters()
  call('LLEN', dead)
  for _, key in ipairs({letters, causes, holes}) do call('HLEN', key) end
end
