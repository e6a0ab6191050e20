"""A process that has lost one of its threads ends, so that somebody starts a whole one."""

from unittest.mock import Mock

import pytest

from priqueue.audit import Auditor
from priqueue.management.beside import Together
from priqueue.sweeper import Sweeper
from priqueue.ticker import Ticker
from tests.support.queues import test_settings

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


def _coordinator(**calls: object) -> Mock:
    """Return a coordinator at which everything works, but for the calls named."""
    made = Mock(settings=test_settings(TICK_S=0.01, SWEEP_S=0.01))
    made.configure_mock(**{"promote.return_value": 0, "reclaim.return_value": 0, **calls})
    return made


def _inspector() -> Mock:
    return Mock(**{"agenda.return_value": (None, []), "silent_workers.return_value": []})  # type: ignore[arg-type]


def test_a_ticker_without_its_listener_ends_with_the_reason() -> None:
    ticker = Ticker(_coordinator(**{"wait_for_due.side_effect": SystemExit}), _inspector())

    with pytest.raises(SystemExit) as ending:
        ticker.run()

    assert ending.value.code == "ticker ends: the thread ticker-listener is dead"


def test_a_coordinator_without_its_sweeper_ends_with_the_reason() -> None:
    coordinator = _coordinator(**{"reclaim.side_effect": SystemExit, "wait_for_due.return_value": False})
    coordinator.wait_for_due.side_effect = lambda timeout_s: both.loop.wait(0.01)
    ticker = Ticker(coordinator, _inspector())
    both = Together(ticker, [Sweeper(coordinator, _inspector())])

    with pytest.raises(SystemExit) as ending:
        both.run()

    assert ending.value.code == "ticker ends: the thread sweeper is dead"


def test_a_sweeper_without_its_auditor_ends_with_the_reason() -> None:
    sweeper = Sweeper(_coordinator(), _inspector())
    auditor = Auditor(Mock(**{"read.side_effect": SystemExit}), "default")  # type: ignore[arg-type]

    with pytest.raises(SystemExit) as ending:
        Together(sweeper, [auditor]).run()

    assert ending.value.code == "sweeper ends: the thread auditor is dead"
