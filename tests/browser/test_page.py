"""The page in a real browser: what people do with it, by mouse and by keyboard."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders import op, session, span
from tests.present.test_page import HOSTILE, hostile

import opscope
from opscope.analyse import OpRow, summary
from opscope.model import Kind, Session
from opscope.present import export

ROOT = Path(__file__).parents[2]
TRACE = ROOT.parent / "shared" / "traces" / "kineto" / "eager_nested_custom_ops.json.gz"
SIZES = (400, 1280, 2000)


@pytest.fixture(scope="module")
def demo() -> Session:
    """The demo, trained a little."""
    example = runpy.run_path(str(ROOT / "examples" / "digits_loss.py"))
    with opscope.profile() as profile:
        example["main"](1)
    recorded: Session = profile.session
    return recorded


@pytest.fixture(scope="module")
def nested() -> Session:
    """A real trace of PyTorch with custom operators in custom operators."""
    if not TRACE.is_file():
        pytest.skip(f"{TRACE.name} is not here")
    return opscope.load(str(TRACE))


@pytest.fixture
def opened(watched: Any, tmp_path: Path) -> Iterator[Callable[[Session], Any]]:
    """`opened(session)` -> the tab with its page; in the end nothing went wrong or out."""

    def open_it(made: Session) -> Any:
        file = tmp_path / "page.html"
        export(made, file, force=True)
        watched.tab.goto(file.as_uri())
        return watched.tab

    yield open_it
    assert watched.errors == []
    assert watched.foreign() == []


def names(tab: Any) -> list[str]:
    """The operators of the table from top to bottom."""
    found: list[str] = tab.locator(".operators .main-row .op-words > .name").all_inner_texts()
    return found


def families(made: Session) -> dict[str, list[OpRow]]:
    """The rows of each operator by name."""
    found: dict[str, list[OpRow]] = {}
    for row in summary(made):
        found.setdefault(row.op, []).append(row)
    return found


def test_the_demo_sorts_opens_and_closes(opened: Callable[[Session], Any], demo: Session) -> None:
    tab = opened(demo)
    costs = {name: sum(r.wall_ns for r in rows) for name, rows in families(demo).items()}
    by_cost = sorted(costs, key=lambda name: -costs[name])
    assert names(tab) == by_cost
    assert tab.locator("h1").inner_text().startswith(by_cost[0])
    tab.locator("th.op .sort").click()
    assert names(tab) == sorted(costs)
    assert tab.locator("th.op").get_attribute("aria-sort") == "ascending"
    tab.locator("th.op .sort").click()
    assert names(tab) == sorted(costs, reverse=True)
    tab.locator("th", has_text="total").locator("button").click()
    assert names(tab) == by_cost
    row = tab.locator(".main-row").first
    row.click()
    detail = tab.locator(".detail")
    assert detail.locator(".phase-head h3").all_inner_texts() == ["Forward", "Backward"]
    assert detail.locator(".histogram svg").count() == 2
    assert row.locator(".opener").get_attribute("aria-expanded") == "true"
    row.locator(".opener").click()
    assert tab.locator(".detail").count() == 0


def test_numbers_on_show_are_those_of_the_analysis(
    opened: Callable[[Session], Any], demo: Session
) -> None:
    tab = opened(demo)
    for name, rows in families(demo).items():
        line = tab.locator(".main-row", has=tab.get_by_text(name, exact=True))
        assert line.locator("td[data-title=calls]").inner_text() == str(sum(r.calls for r in rows))
        cell = line.locator("td[data-title=total]")
        size = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}[cell.get_attribute("data-unit")]
        shown = float(cell.inner_text().replace(",", "")) * size
        assert shown == pytest.approx(sum(r.wall_ns for r in rows), abs=size / 10)


def test_real_nested_operators(opened: Callable[[Session], Any], nested: Session) -> None:
    tab = opened(nested)
    assert set(names(tab)) == {row.op for row in summary(nested)}
    inner = tab.locator(".main-row", has_text="_C_cache_ops::reshape_and_cache_flash")
    assert inner.locator(".around").inner_text() == "vllm::unified_attention_with_output \u203a"
    python = tab.locator(".main-row").first.locator("td[data-title=python]")
    assert python.inner_text() == "\u2013", "what was not measured is not 0"
    assert "the file holds no CPU time" in tab.locator("#sight").inner_text()
    assert tab.locator("#quality").inner_text().count("events left out") == 2
    tab.locator("#operator-search").fill("ALL_RE")
    assert names(tab) == ["vllm::all_reduce"]
    assert tab.locator(".op-words mark").inner_text() == "all_re"
    assert tab.locator(".count").inner_text() == "1 of 9 operators"
    tab.locator("#operator-search").fill("no such thing")
    assert names(tab) == []
    assert tab.locator(".no-match").is_visible()
    tab.locator("#operator-search").fill("")
    assert len(names(tab)) == 9


def test_the_theme_follows_the_system_and_the_switch(
    opened: Callable[[Session], Any], demo: Session
) -> None:
    from playwright.sync_api import expect

    def ground() -> str:
        return str(tab.evaluate("getComputedStyle(document.body).backgroundColor"))

    tab = opened(demo)
    light = ground()
    tab.emulate_media(color_scheme="dark")
    expect(tab.locator("html")).to_have_attribute("data-theme", "dark")
    dark = ground()
    assert dark != light
    tab.locator("#theme").click()
    assert ground() == light
    tab.reload()
    assert ground() == light, "the choice is kept"
    tab.emulate_media(media="print")
    tab.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert tab.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--ink')"
    ) == "#161b24", "paper is light"  # fmt: skip


def focused(tab: Any) -> str:
    """What has the focus, in a word."""
    found: str = tab.evaluate(
        "(() => {const a = document.activeElement;"
        " return [a.tagName, a.id, a.className, a.textContent.slice(0, 20)].join(' ')})()"
    )
    return found


def test_everything_is_reached_by_keyboard(opened: Callable[[Session], Any], demo: Session) -> None:
    tab = opened(demo)
    tab.keyboard.press("Tab")
    assert "Skip to the report" in focused(tab)
    assert tab.locator(".skip").bounding_box()["y"] >= 0
    tab.keyboard.press("Enter")
    assert tab.url.endswith("#main")
    seen = []
    for _ in range(12):
        tab.keyboard.press("Tab")
        seen.append(focused(tab))
        outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", f"the focus on {seen[-1]} cannot be seen"
    assert seen[0].startswith("INPUT operator-search")
    assert seen[1].startswith("BUTTON  sort operator")
    tab.locator("th.op .sort").focus()
    tab.keyboard.press("Enter")
    assert names(tab) == sorted(families(demo))
    assert "sort" in focused(tab), "sorting keeps the focus"
    tab.locator(".opener").first.focus()
    tab.keyboard.press("Enter")
    assert tab.locator(".detail").count() == 1
    tab.keyboard.press("Enter")
    assert tab.locator(".detail").count() == 0
    tab.locator("body").press("/")
    assert focused(tab).startswith("INPUT operator-search")


def test_the_icicle_opens_and_closes_by_mouse_and_keyboard(
    opened: Callable[[Session], Any], nested: Session
) -> None:
    tab = opened(nested)
    tiles = tab.locator(".icicle .tile")
    assert tiles.first.inner_text() == "all custom operators"
    before = tiles.count()
    tiles.nth(1).click()
    assert tab.locator(".crumbs .here").inner_text() == tiles.first.inner_text() != ""
    assert tab.locator(".crumbs button").all_inner_texts() == ["all custom operators"]
    tab.keyboard.press("Escape")
    assert tiles.count() == before
    tiles.first.focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".readout b").inner_text() == "vllm::all_reduce"
    tab.keyboard.press("Enter")
    assert tab.locator(".crumbs .here").inner_text() == "vllm::all_reduce"
    width = tab.locator(".icicle").bounding_box()["width"]
    assert tiles.first.bounding_box()["width"] == pytest.approx(width, abs=3)


def test_a_slow_call_is_asked_for_by_its_id(
    opened: Callable[[Session], Any], demo: Session
) -> None:
    from playwright.sync_api import expect

    tab = opened(demo)
    tab.locator(".opener").first.click()
    links = tab.locator(".detail button.link")
    ids = {int(row) for row in demo.spans["id"][demo.spans["kind"] == Kind.CALL].tolist()}
    assert {int(text.removeprefix("call ")) for text in links.all_inner_texts()} <= ids
    assert links.count() == 10
    links.first.click()
    expect(tab.locator("#timeline-title")).to_be_in_viewport()


def test_hostile_names_do_nothing(opened: Callable[[Session], Any], watched: Any) -> None:
    asked: list[str] = []
    watched.tab.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    tab = opened(hostile())
    shown = names(tab)
    assert len(shown) == 2 * len(HOSTILE)
    for name in HOSTILE[:4]:
        assert name in shown
    assert "lone \\ud800 and \\udfff" in shown
    assert "nul \\x00 bell \\x07" in shown
    assert "rtl \\u202e override \\u2066" in shown
    for opener in tab.locator(".opener").all():
        opener.click()
    for tile in tab.locator(".icicle .tile").all()[:12]:
        tile.focus()
    tab.locator("#operator-search").fill("<script>")
    assert tab.locator("img, iframe").count() == 0
    assert asked == []


def test_five_thousand_operators_are_shown_in_part_and_the_rest_is_told(
    opened: Callable[[Session], Any],
) -> None:
    made = [op(f"op{n:04}") for n in range(5000)]
    lines = [span(n + 1, one, Kind.CALL, 1000 * n, 1000 * n + n + 1) for n, one in enumerate(made)]
    tab = opened(session(lines))
    assert len(names(tab)) == 100
    tab.get_by_role("button", name="Show 900 more").click()
    assert len(names(tab)) == 1000
    assert names(tab)[0] == "op4999"
    assert tab.locator(".count").inner_text() == "1,000 of 5,000 operators"
    assert "4,000 operators of less time" in tab.locator("#operators .more").inner_text()


def test_one_call_is_not_drawn_as_a_distribution(opened: Callable[[Session], Any]) -> None:
    tab = opened(session([span(1, "A", Kind.CALL, 0, 2_310_000)]))
    assert tab.locator("h1").inner_text() == "A costs: 2.31 ms in 1 call"
    tab.locator(".opener").click()
    assert "One call: 2.31 ms." in tab.locator(".detail").inner_text()
    assert tab.locator(".histogram").count() == 0


def test_an_empty_recording_is_a_page_too(opened: Callable[[Session], Any]) -> None:
    tab = opened(session([]))
    assert tab.locator("h1").inner_text() == "Nothing was recorded"
    assert tab.locator(".operators").count() == 0


@pytest.mark.parametrize("width", SIZES)
def test_it_fits_and_is_drawn(
    opened: Callable[[Session], Any], demo: Session, nested: Session, pictures: Path,
    width: int, watched: Any,
) -> None:  # fmt: skip
    for name, scheme, made in (("demo", "light", demo), ("nested", "dark", nested)):
        watched.tab.set_viewport_size({"width": width, "height": 900})
        watched.tab.emulate_media(color_scheme=scheme)
        tab = opened(made)
        tab.locator(".opener").first.click()
        tab.locator("h1").hover()
        sizes = tab.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert sizes[0] <= sizes[1], f"{json.dumps(sizes)}: it scrolls sideways"
        tab.screenshot(path=pictures / f"page-{name}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("width", SIZES)
def test_no_name_is_too_long_for_a_page(
    opened: Callable[[Session], Any], watched: Any, width: int
) -> None:
    watched.tab.set_viewport_size({"width": width, "height": 900})
    for made in (hostile(), session([])):
        tab = opened(made)
        for opener in tab.locator(".opener").all()[-3:]:
            opener.click()
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
