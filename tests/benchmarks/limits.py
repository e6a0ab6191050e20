"""Limits: what the server and one connection can do at all, with the least script that could be called a queue."""

import json
import time
from collections.abc import Callable

from redis import Redis

from tests.benchmarks.probe import payload

_PUT = """
for at = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
  redis.call('RPUSH', KEYS[1], ARGV[at])
end
"""
_TAKE = """
local taken = {}
for at = 1, tonumber(ARGV[1]) do
  local id = redis.call('LPOP', KEYS[1])
  taken[at] = redis.call('HGET', KEYS[2], id)
  redis.call('HDEL', KEYS[2], id)
end
return taken
"""


def limits(client: Redis, number: int) -> dict[str, float]:
    """Return jobs a second: put and taken, by one, 8 and 50 at a time; and what one call takes, in ms."""
    put, take = client.script_load(_PUT), client.script_load(_TAKE)
    text = json.dumps(payload())
    rates = {}
    for size in (1, 8, 50):
        calls = max(10, number // size)
        words = [[word for at in range(size) for word in (f"{call}-{at}", text)] for call in range(calls)]
        rates[f"put {size}"] = size * _rate(words, lambda jobs: client.evalsha(put, 2, "list", "jobs", *jobs))
        rates[f"take {size}"] = size * _rate(words, lambda _, size=size: client.evalsha(take, 2, "list", "jobs", size))
    return {**rates, "call": 1000 / rates["take 1"]}


def _rate(words: list[list[str]], call: Callable[[list[str]], object]) -> float:
    began_s = time.perf_counter()
    for each in words:
        call(each)
    return len(words) / (time.perf_counter() - began_s)
