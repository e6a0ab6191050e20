"""Handlers: the functions that run jobs, each under a name that travels in the job.

1. ``@job`` makes a Handler of a function and enters it in the registry: a bad declaration fails at import;
2. the client binds itself here, and ``handler.enqueue(...)`` goes through it;
3. a worker looks the handler up by the job's name and asks it for the arguments.

A name is only ever looked up, never imported: a job cannot name code that was not declared as a handler.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, Generic, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

from priqueue import callers, jobs, payloads
from priqueue.exceptions import InvalidLane, InvalidPayload, PriqueueError, UnknownHandler
from priqueue.lanes import LANE_NAME
from priqueue.payloads import loads as loads
from priqueue.payloads import loads_strict as loads_strict
from priqueue.retry import Backoff

MAX_ATTEMPTS = 1_000_000
MAX_PAYLOAD_BYTES = 65_536

P = ParamSpec("P")
R = TypeVar("R")


class HandlerOptions(TypedDict, total=False):
    """What ``@job`` takes. ``None`` leaves it to the settings."""

    name: str
    lane: str | None
    max_attempts: int | None
    timeout: float | None
    backoff: Backoff | None
    aliases: Sequence[str]
    api: bool


class EnqueueOptions(TypedDict, total=False):
    """What ``using`` takes. The payload's own keys are apart from these, so they may have the same names."""

    lane: str
    delay: Any
    run_at: Any
    caller: str
    correlation_id: str
    on_commit: bool
    database: str


class Enqueue(Protocol):
    """What the client binds."""

    def __call__(
        self, handler: "AnyHandler", payload: Mapping[str, Any], **options: Unpack[EnqueueOptions]
    ) -> jobs.Job:
        """Enqueue a job and return it."""


@dataclass(eq=False, repr=False)
class Handler(Generic[P, R]):
    """A function that runs the jobs of one name. Calling it runs the function here and now.

    Raises TypeError or ValueError, naming the option, for a declaration that could not work.
    """

    function: Callable[P, R]
    name: str = ""
    #: None is the lane "default"
    lane: str | None = None
    #: failures after which a job is buried; 0 and 1 both mean one run
    max_attempts: int | None = None
    #: seconds that one run may take
    timeout: float | None = None
    backoff: Backoff | None = None
    #: other names under which jobs may still arrive, such as those from before a rename
    aliases: Sequence[str] = ()
    #: whether outside callers may enqueue it over HTTP
    api: bool = False

    def __post_init__(self) -> None:
        _check_function(self.function, named=bool(self.name))
        self.name = self.name or f"{self.function.__module__}.{self.function.__qualname__}"
        _check_options(self)
        self.aliases = tuple(self.aliases)
        self.backoff = _checked_backoff(self)
        self.signature = payloads.Signature(self.function)
        #: whether the function is a coroutine function, which has to be awaited to run
        self.is_async = inspect.iscoroutinefunction(self.function)
        functools.update_wrapper(self, self.function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Handler {self.name}>"

    def __reduce__(self) -> str:
        return self.function.__qualname__  # pickled as a function is: by where it is found

    def accept(self, payload: Mapping[str, Any], max_bytes: int = MAX_PAYLOAD_BYTES) -> str:
        """Return the exact JSON text in which the payload will travel.

        Raises InvalidPayload, naming the argument and why, and PayloadTooLarge.
        """
        try:
            return self.signature.accept(payload, max_bytes)
        except InvalidPayload as fault:
            raise type(fault)(f"{self.name}: {fault}") from fault

    def arguments(self, payload_json: str) -> dict[str, Any]:
        """Return the arguments for one run, fresh each time, in the annotated types.

        Raises InvalidPayload when the text does not fit, or no longer does.
        """
        try:
            return self.signature.arguments(payload_json)
        except InvalidPayload as fault:
            raise InvalidPayload(f"{self.name}: {fault}") from fault

    def using(self, **options: Unpack[EnqueueOptions]) -> "Bound":
        """Return this handler with options for its next jobs."""
        return Bound(self, {}).using(**options)

    def enqueue(self, /, **payload: Any) -> jobs.Job:
        """Enqueue a job with these arguments and return it."""
        return Bound(self, {}).enqueue(**payload)


AnyHandler = Handler[..., Any]


@dataclass(frozen=True, slots=True)
class Bound:
    """A handler and the options with which it is to be enqueued."""

    handler: AnyHandler
    options: Mapping[str, Any] = field(hash=False)

    def using(self, **options: Unpack[EnqueueOptions]) -> "Bound":
        """Return a copy with these options added. Raises TypeError for an option that does not exist."""
        for name in options.keys() - EnqueueOptions.__annotations__.keys():
            raise TypeError(f"using() has no option {name!r}{_did_you_mean(name, EnqueueOptions.__annotations__)}")
        return replace(self, options={**self.options, **options})

    def enqueue(self, /, **payload: Any) -> jobs.Job:
        """Enqueue a job with these arguments and return it."""
        return _bound()(self.handler, payload, **self.options)


_enqueue: Enqueue | None = None


def bind(enqueue: Enqueue) -> None:
    """Say what ``Handler.enqueue`` calls. The client, which lies above this module, does so at import."""
    global _enqueue
    _enqueue = enqueue


def _bound() -> Enqueue:
    if _enqueue is None:
        raise PriqueueError('nothing enqueues yet: put "priqueue" into INSTALLED_APPS and call django.setup()')
    return _enqueue


class Registry:
    """The handlers by their names and aliases."""

    def __init__(self) -> None:
        self._handlers: dict[str, AnyHandler] = {}

    def __iter__(self) -> Iterator[AnyHandler]:
        """Yield each handler once, in the order of their names."""
        return iter(sorted(set(self._handlers.values()), key=lambda handler: handler.name))

    def get(self, name: str) -> AnyHandler:
        """Return the handler of this name or alias. Raises UnknownHandler with the nearest names."""
        found = self._handlers.get(name) if isinstance(name, str) else None
        if found is None:
            near = _did_you_mean(str(name)[:200], self._handlers)
            raise UnknownHandler(f"no handler is registered under {str(name)[:200]!r}{near}")
        return found

    def find(self, name: str) -> AnyHandler | None:
        """Return the handler of this name or alias; None when there is none."""
        return self._handlers.get(name)

    def register(self, handler: AnyHandler) -> None:
        """Enter a handler under its name and aliases.

        The same function again, as after the reload of its module, takes the place of the former. Raises
        ValueError, naming both, when another function has one of the names.
        """
        names = (handler.name, *handler.aliases)
        held = {name: self._handlers[name] for name in names if name in self._handlers}
        for name, holder in held.items():
            if _place(holder) != _place(handler):
                raise ValueError(f"{_place(handler)}: the name {name!r} already belongs to {_place(holder)}")
        former = set(held.values())
        kept = {name: holder for name, holder in self._handlers.items() if holder not in former}
        self._handlers = kept | dict.fromkeys(names, handler)


registry = Registry()


@overload
def job(function: Callable[P, R], /) -> Handler[P, R]: ...
@overload
def job(**options: Unpack[HandlerOptions]) -> Callable[[Callable[P, R]], Handler[P, R]]: ...
def job(function: Callable[..., Any] | None = None, /, **options: Unpack[HandlerOptions]) -> Any:
    """Declare a function as a handler: ``@job``, or ``@job(lane="high", max_attempts=3, timeout=30)``.

    ``name`` defaults to the function's module and qualified name; ``timeout`` and ``backoff`` are seconds.
    Raises TypeError or ValueError for a declaration that could not work.
    """
    if function is None:
        return lambda function: _declare(function, options)
    return _declare(function, options)


def _declare(function: Callable[P, R], options: HandlerOptions) -> Handler[P, R]:
    handler = Handler(function, **options)
    registry.register(handler)
    return handler


def _check_function(function: Any, *, named: bool) -> None:
    if not inspect.isfunction(function):
        raise TypeError(f"{function!r:.200}: a handler is a function; write one that calls this")
    where = f"{function.__module__}.{function.__qualname__}"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{where}: a generator function cannot be a handler, calling it runs nothing")
    if next(iter(inspect.signature(function).parameters), None) in ("self", "cls"):
        raise TypeError(f"{where}: a method cannot be a handler, it has no object to run on; use a function")
    if function.__name__ == "<lambda>" and not named:
        raise TypeError(f"{where}: give a lambda a name of its own, name=…")


def _check_options(handler: AnyHandler) -> None:
    callers.check_word("name", handler.name)
    if isinstance(handler.aliases, str) or not isinstance(handler.aliases, Sequence):
        raise TypeError(f"{handler.name}: aliases: use a tuple of names")
    for alias in handler.aliases:
        callers.check_word("aliases", alias)
    if handler.lane is not None and not (isinstance(handler.lane, str) and LANE_NAME.match(handler.lane)):
        raise InvalidLane(f"{handler.name}: lane: {handler.lane!r:.60} is no name of a lane")
    attempts, timeout = handler.max_attempts, handler.timeout
    if attempts is not None and not (type(attempts) is int and 0 <= attempts <= MAX_ATTEMPTS):
        raise ValueError(f"{handler.name}: max_attempts: use a whole number from 0 to {MAX_ATTEMPTS:,}")
    if timeout is not None and not (type(timeout) in (int, float) and 0 < timeout < jobs.MAX_DELAY.total_seconds()):
        raise ValueError(f"{handler.name}: timeout: use a number of seconds above 0")
    if type(handler.api) is not bool:
        raise TypeError(f"{handler.name}: api: use True or False")


def _checked_backoff(handler: AnyHandler) -> Backoff | None:
    where, backoff = f"{handler.name}: backoff", handler.backoff
    if inspect.iscoroutinefunction(backoff) or inspect.isgeneratorfunction(backoff):
        raise TypeError(f"{where}: use a plain function of (attempt, exception)")
    if backoff is None or callable(backoff):
        return backoff
    if not isinstance(backoff, Sequence) or isinstance(backoff, str | bytes):
        jobs.wait(where, backoff)
        return backoff
    if not backoff:
        raise ValueError(f"{where}: the sequence is empty")
    for wait in backoff:
        jobs.wait(where, wait)
    return tuple(backoff)


def _place(handler: AnyHandler) -> str:
    return f"{handler.function.__module__}.{handler.function.__qualname__}"


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=3)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
