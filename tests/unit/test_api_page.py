"""Every example of docs/api.md is run, in its order and as one module; and the page leaves nothing out."""

import inspect
import re
import sys
from dataclasses import fields
from types import ModuleType

import pytest

import priqueue
from priqueue import events, exceptions, handlers
from priqueue.coordinator import Coordinator
from priqueue.handlers import EnqueueOptions, HandlerOptions
from priqueue.jobs import Job, JobStatus
from priqueue.testing import memory_queue
from tests.support.pages import CHECKS, ROOT, blocks, checked

PAGE = (ROOT / "docs" / "api.md").read_text()


@pytest.fixture
def module(monkeypatch):
    """A fresh module shop.jobs, whose handlers and receivers are forgotten afterwards."""
    made = ModuleType("shop.jobs")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr(handlers.registry, "_handlers", {})
    receivers = list(events.job_enqueued.receivers)
    with memory_queue() as queue:
        vars(made).update(CHECKS, queue=queue)
        yield made
    events.job_enqueued.receivers = receivers
    events.job_enqueued.sender_receivers_cache.clear()


@pytest.mark.django_db(transaction=True)
def test_every_example_does_what_its_comments_say(module):
    for line, code in blocks("api.md"):
        exec(checked("api.md", line, code), vars(module))


def test_there_are_examples_and_they_check_something():
    assert len(blocks("api.md")) > 20
    assert len(re.findall(r"# (→|raises) ", PAGE)) > 60


@pytest.mark.parametrize("name", priqueue.__all__)
def test_it_names_each_public_name(name):
    assert re.search(rf"\b{name}\b", PAGE)


def rows():
    return {name for line in PAGE.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line)}


def test_its_tables_name_every_option_of_a_handler_and_of_enqueue():
    assert HandlerOptions.__annotations__.keys() | EnqueueOptions.__annotations__.keys() <= rows()


def test_its_table_names_every_error_but_the_two_a_handler_raises():
    raised = {name for name, value in vars(exceptions).items() if inspect.isclass(value)}

    assert raised - rows() == {"PriqueueError", "Retry", "Bury"}


@pytest.mark.parametrize("kind", [Job, JobStatus])
def test_it_names_every_field_of(kind):
    assert {field.name for field in fields(kind)} - set(re.findall(r"\w+", PAGE)) <= {"payload_json"}


def test_the_methods_it_calls_on_a_coordinator_exist():
    called = set(re.findall(r"\bc\.(\w+)\(", PAGE))

    assert len(called) > 10
    assert called <= set(dir(Coordinator))


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)", PAGE))
def test_the_pages_it_links_to_exist(target):
    assert (ROOT / "docs" / target).is_file()


@pytest.mark.parametrize("target", re.findall(r"\]\(#([^)]+)\)", PAGE))
def test_the_sections_it_links_to_exist(target):
    headings = re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)

    assert target in {heading.lower().replace(" ", "-") for heading in headings}
