"""Marks in the charts: drawn where they belong, told at the pointer and in a list, in both themes, on a phone."""

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import fresh_site
from tests.support.accessibility import serious
from tests.support.sites import Site

site = fresh_site

OWN = "/queue/"
_MINUTES_AGO = 10
_DRAWN = """() => document.querySelector("[data-chart=load] canvas").toDataURL()"""
_WITHOUT = """() => {
  document.querySelectorAll("[data-mark]").forEach((mark) => mark.remove());
  document.documentElement.dataset.theme = document.documentElement.dataset.theme || "auto";
}"""


@pytest.fixture(autouse=True)
def _paused(site: Site) -> Iterator[None]:
    """Let low be paused since some minutes ago, for a reason that would be markup."""
    site.fill_series()
    since_ms = int(site.raw.time()[0]) * 1000 - _MINUTES_AGO * 60_000
    pause = {"caller": "user:1", "reason": "<b>bank</b> maintenance", "since_ms": since_ms}
    site.raw.hset(site.keys.paused, "low", json.dumps(pause))
    yield
    site.coordinator.resume("low", caller="system", reason="the test is over")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_mark_is_a_line_in_the_chart_in_either_theme(site: Site, open_as: Callable[..., Page], theme: str) -> None:
    page = open_as(color_scheme=theme)
    page.goto(OWN)
    page.locator("[data-pause]").click()
    expect(page.locator("[data-mark]")).to_have_count(1)
    drawn = page.evaluate(_DRAWN)

    page.evaluate(_WITHOUT)

    page.wait_for_function(f"(drawn) => ({_DRAWN})() !== drawn", arg=drawn)


def test_the_pointer_is_told_what_the_mark_is(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.goto(OWN)
    over = page.locator("[data-chart=load] .u-over")
    box = over.bounding_box()

    told = []
    for shift in range(-6, 7):  # a point is some pixels wide
        over.hover(position={"x": box["width"] * (1 - _MINUTES_AGO / 60) + shift, "y": 20})
        told += page.locator("[data-chart=load] .pq-tip span").all_inner_texts()

    marks = {line for line in told if line.startswith("‖")}
    assert marks == {"‖ low paused by root (user:1): “<b>bank</b> maintenance”"}


@pytest.mark.parametrize("javascript", [True, False])
def test_who_does_not_see_the_chart_reads_it_in_a_list(
    site: Site, open_as: Callable[..., Page], javascript: bool
) -> None:
    page = open_as(java_script_enabled=javascript)
    page.goto(OWN)

    summary = page.locator(".pq-marks summary")
    expect(summary).to_contain_text("1 mark in the charts · low paused 10 m ago")
    summary.click()

    expect(page.locator("[data-mark]")).to_contain_text("low paused by root (user:1): “<b>bank</b> maintenance”")
    if javascript:
        assert "1 mark in it is told below" in page.locator("[data-chart=load] [data-plot]").get_attribute("aria-label")


def test_the_list_stays_open_at_polls_fits_a_phone_and_is_accessible(site: Site, open_as: Callable[..., Page]) -> None:
    page = open_as()
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(OWN)
    page.locator(".pq-marks summary").click()

    for _ in range(2):
        with page.expect_response(lambda answer: "/data/" in answer.url):
            pass

    expect(page.locator("[data-mark]")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator(".pq-marks summary").bounding_box()["height"] >= 44
    assert [serious(page, theme) for theme in ("light", "dark")] == [[], []]
