-- parts: several scripts as one, so that what stands in front of each is run once. Each is a function of its own words.
-- What fails in one of them is its answer; the others are done all the same, as if each had been sent by itself.
-- ARGV[1] ARGV[2] ARGV[3] ARGV[4] as basics.lua says; each part gets them, too
-- ARGV[5..] for each part: how many words of its own it has, and those
-- Output: none; parts, to be filled, and run_parts, for what scripts.py joins
local parts, write_all = {}, write_counts
write_counts = function() end -- the figures of all are written together
local function run_parts()
  local answers, at = {}, 5
  for number, part in ipairs(parts) do
    local words, length = {ARGV[1], ARGV[2], ARGV[3], ARGV[4]}, tonumber(ARGV[at])
    for own = 1, length do words[4 + own] = ARGV[at + own] end
    at = at + 1 + length
    local _, answer = pcall(part, words)
    answers[number] = type(answer) == 'table' and answer or {err = tostring(answer)}
  end
  write_all()
  return answers
end
