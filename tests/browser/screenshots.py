"""Write every page, light and dark, wide and narrow, into docs/screenshots/, for ``make screenshots`` alone."""

from collections.abc import Callable
from io import BytesIO

from PIL import Image
from playwright.sync_api import Page

from tests.support.processes import ROOT
from tests.support.sites import Site
from tests.support.tours import addresses, beat, fill

FOLDER = ROOT / "docs" / "screenshots"
_WIDTHS = {1280: 900, 360: 740}
_TALLEST = 1600
_COLOURS = 96


def test_write_every_page(site: Site, open_as: Callable[..., Page]) -> None:
    fill(site)
    for command in ("runsweeper", "runticker"):
        site.start(command)
    FOLDER.mkdir(exist_ok=True)
    page = open_as(device_scale_factor=1)

    # The overviews first: their figures are of this minute.
    for name, address in sorted(addresses(site).items(), key=lambda stop: "overview" not in stop[0]):
        if not name.startswith("own-") or name == "own-overview":
            beat(site)
            _visit(page, address, name.removeprefix("admin-"))
    site.server.freeze()
    _visit(page, "/admin/priqueue/queue/", "outage")
    site.server.thaw()


def _visit(page: Page, address: str, name: str) -> None:
    for width, height in _WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.goto(address)
        for theme in ("light", "dark"):
            _write(page, theme, f"{name}-{theme}-{width}")


def _write(page: Page, theme: str, name: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")
    shown = Image.open(BytesIO(page.screenshot(full_page=True)))
    shown.crop((0, 0, shown.width, min(shown.height, _TALLEST))).quantize(_COLOURS).save(
        FOLDER / f"{name}.png", optimize=True
    )
