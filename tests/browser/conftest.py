"""What the tests in a browser share: a site, a Chromium, and pages that may not complain."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from tests.support.browsers import ARGS, chromium
from tests.support.sites import Site


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A Chromium for these tests. Until it is gone, its event loop runs in this thread and refuses any other."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=ARGS)
        yield started
        started.close()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The project as it is served, with a queue of its own."""
    folder: Path = tmp_path_factory.mktemp("site")
    with Site(folder) as running:
        yield running


@pytest.fixture(scope="module")
def fresh_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of the file's own, for tests that mind what others have left in the queue and in the audit log."""
    with Site(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture
def open_as(browser: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """Open a browser of its own for somebody who is logged in. What its console says in the end is a failure."""
    complaints: list[str] = []
    contexts = []

    def opened(name: str = "root", **options: object) -> Page:
        usual = {"base_url": site.address, "viewport": {"width": 1280, "height": 800}, "timezone_id": "UTC"}
        context = browser.new_context(**{**usual, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.goto("/login/")
        page.fill("#id_username", name)
        page.fill("#id_password", site.password)
        page.click("main button")
        page.on("console", lambda said: _complaint(said, page, complaints))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _foreign(request, site, complaints))
        return page

    yield opened
    for context in contexts:
        context.close()
    # What these pages answer on purpose: Redis is away, and what was sent is not understood.
    assert [said for said in complaints if not re.search("status of (503|422)", said)] == []


def _complaint(said: ConsoleMessage, page: Page, complaints: list[str]) -> None:
    if said.type in ("error", "warning"):
        complaints.append(f"{page.url}: {said.text}")


def _foreign(request: Request, site: Site, complaints: list[str]) -> None:
    if not request.url.startswith(site.address):
        complaints.append(f"foreign: {request.url}")
