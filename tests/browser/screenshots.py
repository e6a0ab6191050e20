"""Write every page, light and dark, wide and narrow, into docs/screenshots/. Only ``make screenshots`` collects it."""

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

    for name, address in addresses(site).items():
        if not name.startswith("own-") or name == "own-overview":
            for width, height in _WIDTHS.items():
                page.set_viewport_size({"width": width, "height": height})
                beat(site)
                page.goto(address)
                for theme in ("light", "dark"):
                    _write(page, theme, f"{name.removeprefix('admin-')}-{theme}-{width}")


def _write(page: Page, theme: str, name: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")
    shown = Image.open(BytesIO(page.screenshot(full_page=True)))
    shown.crop((0, 0, shown.width, min(shown.height, _TALLEST))).quantize(_COLOURS).save(
        FOLDER / f"{name}.png", optimize=True
    )
