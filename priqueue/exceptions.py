"""Everything that priqueue raises.

The docstring of a class is its message when none is given. What refuses an argument is a ``ValueError``
too, so that callers who do not know priqueue handle it as they handle any bad value.
"""


class PriqueueError(Exception):
    """Something is wrong in the job queue."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class ConfigurationError(PriqueueError):
    """The PRIQUEUE setting is wrong."""


class UnknownHandler(PriqueueError, LookupError):
    """No handler is registered under this name."""


class InvalidPayload(PriqueueError, ValueError):
    """The payload does not fit the handler's signature, or cannot travel as JSON."""


class PayloadTooLarge(InvalidPayload):
    """The payload is larger than MAX_PAYLOAD_BYTES."""


class InvalidLane(PriqueueError, ValueError):
    """There is no lane of this name."""


class InvalidDelay(PriqueueError, ValueError):
    """The delay or run_at is not a time from now to ten years ahead."""


class InvalidCaller(PriqueueError, ValueError):
    """A caller or correlation id is 1 to 200 printable characters without quotes, backslashes and spaces."""


class RateLimited(PriqueueError):
    """The caller is over its rate limit."""

    def __init__(self, message: str | None = None, *, retry_after_s: float) -> None:
        super().__init__(message)
        #: how long to wait; infinite where more than a burst was asked for at once, as then no wait helps
        self.retry_after_s = retry_after_s


class NotHandedOver(PriqueueError):
    """The queue did not take a job. ``job_id`` is the first that may be missing, where jobs were handed over."""

    def __init__(self, message: str | None = None, *, job_id: str | None = None) -> None:
        super().__init__(message)
        self.job_id = job_id


class QueueFull(NotHandedOver):
    """The queue takes no more jobs: its memory limit or a lane's MAX_READY is reached."""


class QueueUnavailable(NotHandedOver):
    """The queue did not answer in time. What was asked may or may not have been done."""


class LeaseLost(PriqueueError):
    """The lease is no longer held: it lapsed and was reclaimed, or the job was already settled."""


class WorkerNotRegistered(PriqueueError):
    """The coordinator does not know this worker: it has to register."""


class WorkerDraining(PriqueueError):
    """This worker was asked to drain: it may settle what it holds and claims no more."""


class Retry(Exception):
    """Raised by a handler: a failure, to be tried again after a wait of its own choosing.

    ``after`` is the wait in seconds, or ``None`` for the handler's usual backoff.
    """

    def __init__(self, message: str = "the handler asked for a retry", *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class Bury(Exception):
    """Raised by a handler: a failure for good, straight to the dead letters."""


class Timeout(BaseException):
    """The run took longer than its timeout.

    Raised inside of a handler that is over its time. Like ``KeyboardInterrupt`` it is no ``Exception``, so that a
    handler that catches those does not swallow it.
    """
