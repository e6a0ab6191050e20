"""Accessibility: what axe finds on a page, by WCAG A and AA."""

import json
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_WCAG = json.dumps({"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], "resultTypes": ["violations"]})


def serious(page: Page, theme: Any) -> list[tuple[str, list[str]]]:
    """Return the rules that a page breaks under a theme, and where."""
    page.emulate_media(color_scheme=theme)
    # A colour on its way from the one theme to the other is neither.
    page.evaluate("document.getAnimations().forEach((animation) => animation.finish())")
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    results = page.evaluate(f"axe.run({_WCAG})")
    broken = [each for each in results["violations"] if each["impact"] in ("serious", "critical")]
    return [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in broken]
