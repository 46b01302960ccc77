"""What the documentation says: its links lead somewhere, its programs run, its lists are whole."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.end_to_end.conftest import ENVIRONMENT

import opscope
from opscope import analyse
from opscope.analyse.lanes import LaneRow
from opscope.analyse.lines import LineRow
from opscope.analyse.steps import StepRow
from opscope.analyse.subs import SubRow
from opscope.analyse.summary import OpRow
from opscope.cli import _commands

ROOT = Path(__file__).parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGES = (README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md")))
COMMANDS = _commands()


def text(page: Path) -> str:
    return page.read_text("utf-8")


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The file and the anchor, or '', of each link to something of ours."""
    for target in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        if not target.startswith(("http://", "https://")):
            file, _, anchor = target.partition("#")
            yield (page.parent / file).resolve() if file else page, anchor


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def programs(page: Path) -> list[str]:
    """Blocks of Python that stand for themselves: they import what they use."""
    blocks = re.findall(r"^```python\n(.*?)^```", text(page), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "import opscope\n" in block and "train()" not in block]


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**ENVIRONMENT, "PYTHONUTF8": "1", **environment},
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for file, anchor in links(page):
        assert file.exists(), file
        assert not anchor or anchor in anchors(file), (file, anchor)


def test_every_page_can_be_reached_from_the_first() -> None:
    found, open_ = set(), [README]
    while open_:
        page = open_.pop()
        if page not in found and page.suffix == ".md":
            found.add(page)
            open_ += [file for file, _ in links(page)]
    assert set(PAGES) - found == set()


def test_the_program_of_the_readme_prints_a_table_that_fits_the_terminal() -> None:
    (program,) = programs(README)
    printed = run(program, COLUMNS="80")
    assert re.search(r"^resample +20 ", printed, re.MULTILINE)
    assert re.search(r"^└ stretch +20 ", printed, re.MULTILINE)
    assert max(map(len, printed.splitlines())) <= 80


def test_the_programs_of_the_page_about_python_run(folder: Path) -> None:
    first, second = programs(DOCS / "python.md")
    assert "resample" in run(first)
    assert (folder / "run.html").is_file()
    for name in ("run", "old", "new"):
        run(f"import opscope\nwith opscope.profile(output='{name}.opscope'):\n"
            "    with opscope.custom_op('work'): pass")  # fmt: skip
    assert "work python" in run(second)
    assert (folder / "run.pftrace").is_file()


@pytest.mark.parametrize("name", [n for n in opscope.__all__ if n[0] != "_"])
def test_every_public_name_is_told(name: str) -> None:
    assert f"`{name}`" in text(DOCS / "python.md")


@pytest.mark.parametrize("name", COMMANDS.list_commands(click.Context(COMMANDS)))
def test_every_option_of_a_command_stands_on_its_page(name: str) -> None:
    page = text(DOCS / "commands" / f"{name}.md")
    command = COMMANDS.get_command(click.Context(COMMANDS), name)
    assert command is not None
    for option in command.params:
        if isinstance(option, click.Option):
            assert any(re.search(rf"[`\[ |]{re.escape(o)}\b", page) for o in option.opts), option
    assert f"commands/{name}.md" in text(DOCS / "cli.md")


@pytest.mark.parametrize(
    ("page", "keys"),
    [
        ("commands/report.md", OpRow.KEYS),
        ("commands/report.md", SubRow.KEYS),
        ("commands/report.md", analyse.CallRow.KEYS),
        ("commands/report.md", LaneRow.KEYS),
        ("commands/report.md", StepRow.KEYS),
        ("commands/export.md", analyse.SPAN_KEYS),
        ("commands/export.md", analyse.LINK_KEYS),
        ("hot-lines.md", LineRow.KEYS),
    ],
)
def test_the_keys_of_json_stand_there_in_their_order(page: str, keys: tuple[str, ...]) -> None:
    flat = re.sub(r"\s+", " ", text(DOCS / page))
    before, timed, after = ", ".join(keys).partition(", " + ", ".join(analyse.TIME_KEYS))
    listed = f"`{before}`"
    if timed:
        listed += ", parts, beside" + (f", `{after[2:]}`" if after else "")
        for words in (analyse.PART_KEYS, analyse.BESIDE_KEYS):
            assert f"`{', '.join(words)}`" in flat
    assert listed in flat
