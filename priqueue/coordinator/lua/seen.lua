-- seen: a duty that changes nothing by a script of its own says that it has had its turn.
-- ARGV[5] duty
-- Output: 1
saw(ARGV[5])
return 1
