"""The timeline of the page in a real browser: what it shows of a session and of a selection."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.browser.timelines import Timeline, many, several, showing, until
from tests.builders import session, span
from tests.present.test_page import HOSTILE as HOSTILE_TEXTS
from tests.present.test_page import hostile

import opscope
from opscope.model import Flag, Kind, Lane, Process, Session
from opscope.present.page import timeline, write_page
from opscope.present.text import visible

CALL, OP = Kind.CALL, Kind.OP
ROOT = Path(__file__).parents[2]
HOSTILE = "</script><script>document.title='broken'</script>\x00\u202e\u05d0" + "x" * 300


@pytest.fixture
def shown(watched: Any, tmp_path: Path) -> Iterator[Callable[..., Timeline]]:
    yield from showing(watched, tmp_path)


def test_what_a_call_owns_is_lit_on_every_lane_and_the_rest_is_dimmed(
    shown: Callable[..., Timeline],
) -> None:
    made = shown(several())
    device, alone = made.at(9), made.at(8)
    bright = [made.pixel(x - 18, y + 6) for x, y in (device, alone)]
    made.click(1)
    state = made.state()
    assert state["selected"] == 1
    assert state["lit"] == [1, 2, 3, 4, 5, 6, 9, 10]
    after = [made.pixel(x - 18, y + 6) for x, y in (device, alone)]
    assert after[0] == bright[0], "owned, on a stream: as before"
    assert after[1] != bright[1]
    surface = made.colour("--surface")
    faded = [abs(a - s) < abs(b - s) for a, b, s in zip(after[1], bright[1], surface, strict=True)]
    assert all(faded), "nearer to the ground"
    # Inside its own 0.1 ms everything is measured, and what it owns counts.
    text = made.details.inner_text()
    assert "owns\n7 spans on 3 lanes" in text
    said = made.tab.locator("#timeline-said")
    assert said.inner_text().split(", ")[1:] == ["1.00 ms", "owns 7 spans"], (
        "no own time among them"
    )
    assert "call of a custom operator, forward" in text
    assert "Wall time 1.00 ms" in text
    made.tab.keyboard.press("Escape")
    assert made.state()["lit"] == []
    assert made.pixel(alone[0] - 18, alone[1] + 6) == bright[1]


def test_arrows_of_the_selection_and_all_arrows(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    assert made.state()["arrowsDrawn"] == 0
    made.click(1)
    assert (made.state()["arrows"], made.state()["arrowsDrawn"]) == (3, 3)
    made.click(8)
    assert made.state()["arrowsDrawn"] == 0
    made.tab.get_by_role("button", name="Show all arrows in sight").click()
    assert made.state()["arrowsDrawn"] == 3
    made.tab.get_by_role("button", name="Show all arrows in sight").click()
    assert made.state()["arrowsDrawn"] == 0


def test_owners_and_partners_are_buttons(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    made.click(4)
    assert made.state()["selected"] == 4
    assert made.state()["lit"] == [], "only what owns something dims the rest"
    links = made.details.locator(".timeline-link")
    assert links.all_inner_texts() == ["A", "B"]
    links.first.click()
    assert made.state()["selected"] == 1
    assert "\nbackward\n_backward_A\n" in made.details.inner_text()
    made.details.get_by_role("button", name="_backward_A").click()
    assert "\nforward\nA\n" in made.details.inner_text()
    assert made.state()["selected"] == 7
    made.details.get_by_role("button", name="A", exact=True).click()
    assert made.state()["selected"] == 1
    made.details.get_by_role("button", name="Zoom to this slice").click()
    place, box = made.where(1), made.canvas.bounding_box()
    assert place["width"] == pytest.approx(0.8 * box["width"], rel=0.01)


def test_a_call_of_the_table_is_shown_and_selected(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    made.tab.locator(".main-row").first.click()
    made.tab.get_by_role("button", name="call 7", exact=True).click()
    state = made.state()
    assert state["selected"] == 7
    until(made.tab, "document.querySelector('#timeline').getBoundingClientRect().top < 100")
    box = made.canvas.bounding_box()
    assert made.where(7)["width"] == pytest.approx(0.6 * box["width"], rel=0.01)
    assert made.details.locator("h3").inner_text().endswith("_backward_A")


def test_the_theme_is_that_of_the_page(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    x, y = made.at(6)
    light = made.pixel(x + 40, y + 6)
    assert light == made.colour("--part-sub")
    made.tab.locator("#theme").click()
    x, y = made.at(6)
    dark = made.pixel(x + 40, y + 6)
    assert dark == made.colour("--part-sub")
    assert dark != light


def test_what_is_left_out_is_told_in_words_and_where(
    shown: Callable[..., Timeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    def edge(made: Timeline) -> list[list[int]]:
        box = made.canvas.bounding_box()
        return [made.pixel(box["x"] + 300 + k, box["y"] + 5) for k in range(8)]

    full = shown(many(3000))
    assert not full.tab.locator("p.timeline-left").is_visible()
    surface = full.colour("--surface")
    assert sum(pixel == surface for pixel in edge(full)) > 6, "but for a line of the grid"
    monkeypatch.setattr(timeline, "packed", partial(timeline.packed, limit=1000))
    made = shown(many(3000))
    note = made.tab.locator("p.timeline-left")
    assert note.inner_text().startswith("5,000 of 6,000 spans are left out: the shortest")
    assert made.state()["slices"] < 6000
    assert sum(pixel != surface for pixel in edge(made)) >= 4, "a dotted edge above the lane"


def test_paper_is_light_and_the_screen_is_dark_again(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    made.tab.emulate_media(color_scheme="dark")
    until(made.tab, "document.documentElement.dataset.theme === 'dark'")
    x, y = made.at(6)
    dark = made.pixel(x + 40, y + 6)
    made.tab.emulate_media(media="print")
    x, y = made.at(6)
    assert made.pixel(x + 40, y + 6) == made.colour("--part-sub")
    made.tab.emulate_media(media="screen")
    x, y = made.at(6)
    assert made.pixel(x + 40, y + 6) == dark


def test_an_empty_session_says_so(watched: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    with file.open("w", encoding="utf-8", newline="") as page:
        write_page(Session(), page)
    watched.tab.goto(file.as_uri())
    assert "This session holds no spans." in watched.tab.locator("#timeline").inner_text()
    assert watched.errors == []


def test_hostile_names_are_text(shown: Callable[..., Timeline]) -> None:
    lines = [span(1, HOSTILE, CALL, 0, 1000), span(2, HOSTILE, OP, 100, 900, owner=1)]
    made = shown(session([*lines, span(3, "\u202e" + "\u05d0" * 9, OP, 2000, 9000)]))
    made.tab.mouse.dblclick(*made.at(1))
    made.click(1)
    heading = made.details.locator("h3").inner_text()
    assert "</script><script>document.title='broken'</script>\\x00\\u202e\u05d0xxx" in heading
    assert "broken" not in made.tab.title()
    made.tab.mouse.move(*made.at(2))
    assert "</script>" in made.tab.locator(".timeline-tip strong").inner_text()


def test_every_hostile_text_of_a_session_is_text_in_the_timeline(
    shown: Callable[..., Timeline],
) -> None:
    made = shown(hostile())
    title = made.tab.title()
    search = made.tab.get_by_label("Search the names of the timeline")
    lanes = made.tab.locator(".timeline-names .timeline-lane .timeline-name").all_text_contents()
    assert lanes == list(map(visible, HOSTILE_TEXTS))
    for number, name in enumerate(HOSTILE_TEXTS):
        seen = visible(name)
        search.fill(f"in {seen}"[:200])
        search.press("Enter")
        inner = 3 * number + 3
        assert made.state()["current"] == inner
        made.canvas.focus()
        made.click(inner)
        made.tab.mouse.move(*made.at(inner))
        path = f"{seen}::in {seen}"
        short = path if len(path) <= 120 else f"{path[:59]}…{path[-60:]}"
        assert made.tab.locator(".timeline-tip strong").text_content() == short
        made.details.locator(".timeline-chain button").first.click()
        assert made.state()["selected"] == 3 * number + 1
        facts = dict(
            zip(
                made.details.locator("dt").all_text_contents(),
                made.details.locator("dd").all_text_contents(),
                strict=True,
            )
        )
        assert made.details.locator("h3").text_content().endswith(seen[:300])
        assert facts["operator"] == f"{seen} ({seen}.py:3)"
        assert facts["lane"] == seen
    whole = made.tab.locator("#timeline").evaluate("(node) => node.textContent + node.outerHTML")
    assert not re.search("[\0\a\u202e\u2066\u2028\u2029\ud800-\udfff\ufffd]", whole)
    assert made.tab.locator("#timeline script, #timeline img").count() == 0
    assert made.tab.title() == title


def test_what_is_owned_elsewhere_is_not_on_two_lanes(shown: Callable[..., Timeline]) -> None:
    lines = [span(1, "A", CALL, 0, 1000), span(2, "far", OP, 0, 900, owner=1, lane="pool")]
    made = shown(session(lines))
    made.click(1)
    assert "owns\n1 span on another lane" in made.details.inner_text()
    lines = [span(1, "A", CALL, 0, 1000), span(2, "late", OP, 500, 1400, owner=1)]
    made = shown(session(lines))
    assert made.where(1)["top"] != made.where(2)["top"]
    made.click(1)
    assert "owns\n1 span\n" in made.details.inner_text(), "a track beside it is the same lane"


def test_names_of_buttons_begin_with_what_they_show(shown: Callable[..., Timeline]) -> None:
    """So that who speaks to a computer can say what is read."""
    made = shown(several())
    made.click(1)
    for button in made.tab.locator("#timeline .timeline-button").all():
        shows = button.inner_text()
        if shows.isalpha():
            assert shows.lower() in button.get_attribute("aria-label").lower().split(" ")[0:4] or (
                button.get_attribute("aria-label").startswith(shows)
            ), shows


def test_lanes_and_processes_fold(shown: Callable[..., Timeline]) -> None:
    lines = [
        span(1, "A", CALL, 0, 1000),
        span(2, "in", OP, 100, 900, owner=1),
        span(3, "B", CALL, 0, 1000, lane="far"),
    ]
    lanes = [Lane("main", thread=4), Lane("far", process=1)]
    processes = [Process(pid=7, command=("/x/one.py",)), Process(pid=8, command=("two.py",))]
    made = shown(session(lines, lanes=lanes, processes=processes))
    labels = made.tab.locator(".timeline-names button .timeline-name")
    assert labels.all_inner_texts() == ["one.py (7)", "main", "two.py (8)", "far"]
    lane = made.tab.get_by_role("button", name="main")
    assert lane.get_attribute("aria-expanded") == "true"
    assert made.where(2) is not None
    lane.click()
    assert made.where(2) is None
    assert made.where(1)["height"] < 12
    assert made.tab.get_by_role("button", name="main").get_attribute("aria-expanded") == "false"
    made.tab.get_by_role("button", name="two.py").press("Enter")
    assert made.where(3) is None
    assert labels.all_inner_texts() == ["one.py (7)", "main", "two.py (8)"]
    assert made.tab.evaluate("document.activeElement.textContent").endswith("two.py (8)")
    made.tab.keyboard.press("ArrowUp")
    assert made.tab.evaluate("document.activeElement.textContent").endswith("main")
    # Whatever is looked for comes into sight.
    box = made.tab.get_by_label("Search the names of the timeline")
    box.fill("in")
    box.press("Enter")
    assert made.where(2) is not None


def test_moments_far_from_the_start_are_exact(shown: Callable[..., Timeline]) -> None:
    far = 2**52
    made = shown(
        session(
            [
                span(1, "A", CALL, 2**62, 2**62 + 10),
                span(2, "B", CALL, 2**62 + far, 2**62 + far + 9),
                span(3, "C", OP, 2**62 + far + 3, 2**62 + far + 7, owner=2),
            ]
        )
    )
    box = made.tab.get_by_label("Search the names of the timeline")
    box.fill("B")
    box.press("Enter")
    made.canvas.focus()
    for _ in range(40):
        made.tab.keyboard.press("w")
    box.press("Enter")
    outer, inner = made.where(2), made.where(3)
    assert outer["width"] > 100
    pixels = outer["width"] / 9
    assert inner["left"] - outer["left"] == pytest.approx(3 * pixels)
    assert inner["width"] == pytest.approx(4 * pixels)
    made.click(2)
    assert "start\n4,503,599,627.370496 ms" in made.details.inner_text()


def test_a_frame_costs_what_is_on_the_screen(shown: Callable[..., Timeline]) -> None:
    """However many slices there are, no more is drawn than pixels can tell apart."""
    made = shown(many(30_000))
    width = made.canvas.bounding_box()["width"]
    state = made.state()
    assert state["slices"] > 60_000
    assert state["rectangles"] <= state["rows"] * (width + 1)
    assert 0 < state["looked_at"] <= state["rows"] * (width + 2)
    frames = state["frames"]
    made.tab.evaluate(
        "new Promise((done) => { let k = 5; const next = () => --k ? requestAnimationFrame(next)"
        " : done(); next(); })"
    )
    assert made.state()["frames"] == frames, "nothing changed, nothing is drawn"


def test_pictures(chromium: Any, tmp_path: Path, pictures: Path) -> None:
    """For people to look at: the demo, as it opens and with a call selected."""
    example = runpy.run_path(str(ROOT / "examples" / "digits_loss.py"))
    with opscope.profile() as profile:
        example["main"](1)
    made = profile.session
    spans = made.spans
    slow = spans[spans["kind"] == CALL]
    slow = slow[(slow["flags"] & Flag.OUTLIVED) == 0]
    ident = int(slow["id"][len(slow) // 2])
    file = tmp_path / "page.html"
    with file.open("w", encoding="utf-8", newline="") as page:
        write_page(made, page)
    for theme, width in (("light", 400), ("light", 1280), ("dark", 1280), ("dark", 2000)):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
        )
        tab = context.new_page()
        tab.goto(file.as_uri())
        shot = Timeline(tab)
        tab.evaluate("document.querySelector('#timeline').scrollIntoView({behavior: 'instant'})")
        section = tab.locator("#timeline")
        for _ in range(80):
            place = shot.where(ident)
            if place and place["width"] > width / 4:
                break
            x, y = shot.at(ident)
            tab.mouse.move(x, y)
            tab.keyboard.down("Control")
            tab.mouse.wheel(0, -100)
            tab.keyboard.up("Control")
        shot.click(ident)
        assert shot.state()["selected"] == ident
        target = pictures / f"timeline-{theme}-{width}.png"
        target.unlink(missing_ok=True)
        section.screenshot(path=target)
        assert target.stat().st_size > 10_000
        context.close()
