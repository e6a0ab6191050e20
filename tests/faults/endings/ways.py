"""Every way in which a handler can end: by name, what it does, and what is remembered of it."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SECRET = "hunter2, of a local variable"
_MODULE = __name__


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit("even this")

    __repr__ = __str__


class Unpicklable(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


def _raise(error: BaseException) -> Callable[[], Any]:
    def end() -> None:
        password = SECRET
        assert password
        raise error

    return end


def _recurse() -> None:
    _recurse()


def _chain(links: int) -> BaseException:
    error: BaseException = ValueError("the first")
    for number in range(links):
        later = ValueError(f"link {number}")
        later.__cause__ = error
        error = later
    return error


def _cycle() -> BaseException:
    error = ValueError("its own cause")
    error.__cause__ = error.__context__ = error
    return error


async def _later() -> None:
    pass


def _numbers() -> Iterator[int]:
    yield 1


async def _numbers_later() -> Any:
    yield 1


@dataclass(frozen=True)
class Way:
    """What a handler does, the error that is remembered, and a word of its message."""

    end: Callable[[], Any]
    error: str
    word: str = ""


WAYS = {
    "exception": Way(_raise(ValueError("no luck")), "ValueError", "no luck"),
    "SystemExit": Way(lambda: sys.exit(3), "SystemExit", "3"),
    "KeyboardInterrupt": Way(_raise(KeyboardInterrupt()), "KeyboardInterrupt"),
    "GeneratorExit": Way(_raise(GeneratorExit()), "GeneratorExit"),
    "StopIteration": Way(_raise(StopIteration(1)), "StopIteration"),
    "CancelledError": Way(_raise(asyncio.CancelledError("me")), "asyncio.exceptions.CancelledError", "me"),
    "group": Way(_raise(BaseExceptionGroup("all", [SystemExit(1), KeyboardInterrupt()])), "BaseExceptionGroup", "all"),
    "group of 1,000": Way(_raise(ExceptionGroup("many", [ValueError("x")] * 1_000)), "ExceptionGroup", "many"),
    "MemoryError": Way(_raise(MemoryError("none left")), "MemoryError", "none left"),
    "RecursionError": Way(_recurse, "RecursionError", "maximum recursion depth"),
    "mute": Way(_raise(Mute()), f"{_MODULE}.Mute", "cannot be shown"),
    "unpicklable": Way(_raise(Unpicklable("so what")), f"{_MODULE}.Unpicklable", "so what"),
    "10 MB": Way(_raise(ValueError("x" * 10_000_000)), "ValueError", "10,000,000 characters"),
    "NUL": Way(_raise(ValueError("a\x00b")), "ValueError", r"a\x00b"),
    "ANSI": Way(_raise(ValueError("\x1b[2J")), "ValueError", r"\x1b[2J"),
    "surrogate": Way(_raise(ValueError("\ud800")), "ValueError", r"\ud800"),
    "bytes": Way(_raise(ValueError(b"\x9c\x00")), "ValueError", r"\x9c"),
    "200 links": Way(_raise(_chain(200)), "ValueError", "link 199"),
    "cycle": Way(_raise(_cycle()), "ValueError", "its own cause"),
    "a coroutine": Way(_later, "TypeError", "returned a coroutine"),
    "a generator": Way(_numbers, "TypeError", "returned a generator"),
    "an asynchronous generator": Way(_numbers_later, "TypeError", "returned a async_generator"),
}
