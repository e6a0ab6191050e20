"""form: a form of a page acts once, however often it is sent."""

from collections.abc import Iterator

import pytest

from priqueue.coordinator.forms import Forms
from tests.support.queues import Queue

DONE = '{"text": "done"}'


@pytest.fixture
def forms(queue: Queue) -> Iterator[Forms]:
    made = Forms(queue.client, queue.settings, queue.clock)
    yield made
    made.close()


def test_the_first_to_send_it_may_go_on(forms: Forms) -> None:
    assert forms.begin("token") is None


def test_who_sends_it_while_the_first_is_at_it_is_told_so(forms: Forms) -> None:
    forms.begin("token")

    assert forms.begin("token") == ""


def test_who_sends_it_later_is_given_the_outcome(forms: Forms) -> None:
    forms.begin("token")

    forms.finish("token", DONE)

    assert forms.begin("token") == DONE


def test_another_form_is_not_held_up(forms: Forms) -> None:
    forms.begin("token")

    assert forms.begin("other") is None


def test_the_first_stays_the_first_when_its_answer_was_lost(real_queue: Queue) -> None:
    forms = Forms(real_queue.client, real_queue.settings)
    real_queue.coordinator.client, eaten = forms.client, real_queue.coordinator.client
    real_queue.eat_replies(1)

    first = forms.begin("token")

    real_queue.coordinator.client = eaten
    forms.close()
    assert first is None


def test_it_is_kept_for_an_hour_and_not_for_ever(queue: Queue, forms: Forms) -> None:
    forms.begin("token")
    begun_s = queue.raw.ttl(queue.keys.prefix + "form:token")

    forms.finish("token", DONE)

    assert 3500 < begun_s <= 3600
    assert 3500 < queue.raw.ttl(queue.keys.prefix + "form:token") <= 3600
