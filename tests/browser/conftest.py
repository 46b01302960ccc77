"""A real Chromium for what people look at. Skips, by name, where there is none.

The browser is the installed one (OPSCOPE_CHROMIUM, or what is on the path); nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

#: Chromium reports no network of its own, and starts as root in a container.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: Screenshots for people to look at; ignored by git.
PICTURES = Path(__file__).parents[2] / "build" / "screenshots"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for the tests of a module, driven by Playwright.

    No longer: while Playwright drives it, the main thread counts as inside an asyncio loop.
    """
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    named = os.environ.get("OPSCOPE_CHROMIUM", "")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is installed (OPSCOPE_CHROMIUM names one elsewhere)")
    with driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


class Watched:
    """A tab, with what it said and asked for: `errors` (console and uncaught), `requests`."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.errors: list[str] = []
        self.requests: list[str] = []
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.on("console", self._said)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def foreign(self) -> list[str]:
        """Requests to anything but files and data."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]


@pytest.fixture
def watched(chromium: Any) -> Iterator[Watched]:
    """A new tab of 1280 x 800 in a profile of its own."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    yield Watched(context.new_page())
    context.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where screenshots go."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    return PICTURES
