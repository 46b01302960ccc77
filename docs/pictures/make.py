"""Makes every picture of the documentation anew, from recordings that it makes itself.

    python docs/pictures/make.py [FOLDER]

Terminal tables and the drawing of limits_2019.py are SVG. Pictures of the page need Playwright and
an installed Chromium (OPSCOPE_CHROMIUM names one elsewhere); without, they stay as they are.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from draw import draw
from png8 import png8
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

import opscope
from opscope.analyse import calls
from opscope.model import Kind, Session
from opscope.present import chrome_events, print_report

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
#: Nothing in the repository needs more to be read.
MOST_BYTES = 150_000
#: The page lists so many slow calls of an operator.
LISTED = 5
#: What is shorter can hardly be seen.
STRETCH_NS = 1_000_000


def main() -> None:
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command("demo", "-o", name)
        command("run", "-o", f"{name}/limits.opscope", "examples/limits_2019.py")
        demo, limits = (load(folder / f"{stem}.opscope") for stem in ("demo", "limits"))
        for width in (80, 200):
            table(demo, width, "opscope report demo.opscope", into / f"table-{width}.svg")
        table(limits, 80, "opscope report limits.opscope", into / "tree-80.svg")
        events = [json.loads(text) for text in chrome_events(limits)]
        (into / "limits-2019.svg").write_text(draw(events), "utf-8")
        with browser() as chromium:
            if chromium is not None:
                which = record_slow(folder / "slow.opscope")
                for stem in ("demo", "slow"):
                    page = f"{name}/{stem}.html"
                    command("html", f"{name}/{stem}.opscope", "-o", page, "--redact")
                pages(chromium, folder, into, which)
    for path in sorted(into.iterdir()):
        if path.suffix in (".svg", ".png"):
            size = path.stat().st_size
            print(f"{size:8,}  {path.name}")
            if size > MOST_BYTES:
                raise SystemExit(f"{path} is too large for a picture")


def record_slow(file: Path) -> int:
    """Record the program of the tutorial; returns which of the slowest calls the picture shows.

    The text tells of three stretches: Python, a sleep, and a wait for a lock. Not every call has
    all of them, as `publish` may hold the lock during the sleep alone.
    """
    for _ in range(10):
        command("run", "--force", "-o", str(file), "examples/slow_operator.py")
        session = opscope.load(file)
        spans = session.spans
        asleep = spans[spans["kind"] == Kind.WAIT]
        slowest = sorted(calls(session), key=lambda row: -row.wall_ns)
        listed = [row for row in slowest if row.op == "normalise"][:LISTED]
        # The slowest ones are slow by bad luck; the last of those listed is like most calls.
        for which, row in reversed(list(enumerate(listed))):
            (sleep,) = asleep[asleep["owner"] == row.call]
            begin, end = (int(sleep[key]) - session.start_ns for key in ("start_ns", "end_ns"))
            if min(begin - row.start_ns, row.start_ns + row.wall_ns - end) > STRETCH_NS:
                return which
    raise SystemExit("no call of normalise waited for the lock: is the machine busy?")


def command(*args: str) -> None:
    """Run `opscope`, whose own words are of no interest here."""
    subprocess.run(
        [sys.executable, "-m", "opscope", *args],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def load(file: Path) -> Session:
    """A recording in which files are named from the root of the repository on."""
    session = opscope.load(file)
    ops = [
        replace(op, file=os.path.relpath(op.file, ROOT) if op.file else "") for op in session.ops
    ]
    return replace(session, ops=tuple(ops))


def table(session: Session, width: int, title: str, file: Path) -> None:
    """The default table as a terminal of that width shows it."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=width,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    print_report(session, console)
    console.print()  # the template cuts the last line short, below the letters
    # The fonts of the template would be fetched from elsewhere.
    fetched = r"@font-face \{\{.*?\}\}|<!--.*?-->"
    template = re.sub(fetched, "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    text = console.export_svg(title=title, code_format=template, unique_id=file.stem)
    file.write_text(re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE), "utf-8")


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium, or None with a word about why."""
    found = os.environ.get("OPSCOPE_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        print("no pictures of the page: they need playwright and an installed Chromium")
        yield None
        return
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=found, args=list(FLAGS))
        yield chromium
        chromium.close()


def pages(chromium: Any, folder: Path, into: Path, which: int) -> None:
    """The page of the demo, wide, narrow and dark, and the timeline of a slow operator's call."""
    for name, width, height, scheme in (
        ("page", 1280, 980, "light"),
        ("page-dark", 1280, 980, "dark"),
        ("page-narrow", 400, 860, "light"),
    ):
        with tab(chromium, folder / "demo.html", width, height, scheme) as shown:
            shown.wait_for_timeout(500)
            save(shown, shown.screenshot(), into / f"{name}.png")
    with tab(chromium, folder / "slow.html", 1280, 1400, "light") as shown:
        shown.locator(".main-row", has_text="normalise").first.click()
        shown.get_by_title("Show it in the timeline").nth(which).click()
        shown.wait_for_timeout(1500)  # it moves there
        save(shown, shown.locator("#timeline").screenshot(), into / "timeline.png")


@contextmanager
def tab(chromium: Any, file: Path, width: int, height: int, scheme: str) -> Iterator[Any]:
    """A page in a profile of its own. Whatever it complains of ends the script."""
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    shown = context.new_page()
    errors: list[str] = []
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.goto(file.resolve().as_uri())
    yield shown
    context.close()
    if errors:
        raise SystemExit(f"{file.name}: {errors}")


def save(shown: Any, picture: bytes, file: Path) -> None:
    """With at most 256 colours, which is a third of the size."""
    file.write_bytes(png8(shown.context, picture))


if __name__ == "__main__":
    main()
