"""Moving about in the timeline of the page in a real browser: by mouse, keyboard and touch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.timelines import HOOK, Timeline, many, several, showing, until


@pytest.fixture
def shown(watched: Any, tmp_path: Path) -> Iterator[Callable[..., Timeline]]:
    yield from showing(watched, tmp_path)


def test_the_wheel_zooms_about_the_pointer_and_else_scrolls_the_page(
    shown: Callable[..., Timeline],
) -> None:
    made = shown(several())
    x, y = map(round, made.at(9))  # a wheel's place is in whole pixels
    before, moment = made.state(), made.time(x)
    made.tab.mouse.move(x, y)
    made.tab.keyboard.down("Control")
    for _ in range(5):
        made.tab.mouse.wheel(0, -120)
    made.tab.keyboard.up("Control")
    until(made.tab, f"{HOOK}.state().span < a / 5", before["span"])
    assert made.time(x) == pytest.approx(moment, abs=before["span"] * 1e-9)
    zoomed = made.state()
    made.tab.keyboard.down("Shift")
    made.tab.mouse.wheel(0, 100)
    made.tab.keyboard.up("Shift")
    until(made.tab, f"{HOOK}.state().from > a", zoomed["from"])
    assert made.state()["span"] == zoomed["span"]
    still = made.state()
    top = made.tab.evaluate("scrollY")
    made.tab.mouse.wheel(0, -200)
    until(made.tab, "scrollY < a", top)
    assert made.state()["span"] == still["span"]


def test_keys_zoom_and_move(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    whole = made.state()
    made.canvas.focus()
    press = made.tab.keyboard.press
    press("w")
    zoomed = made.state()
    assert zoomed["span"] == pytest.approx(whole["span"] / 1.6)
    middle = whole["from"] + whole["span"] / 2
    assert zoomed["from"] + zoomed["span"] / 2 == pytest.approx(middle)
    press("d")
    assert made.state()["from"] == pytest.approx(zoomed["from"] + zoomed["span"] / 4)
    press("a")
    assert made.state()["from"] == pytest.approx(zoomed["from"])
    press("ArrowRight")
    assert made.state()["from"] == pytest.approx(zoomed["from"] + zoomed["span"] / 5)
    press("ArrowLeft")
    press("+")
    press("-")
    press("s")
    press("s")
    assert made.state()["span"] == whole["span"], "never more than all"
    for _ in range(60):
        press("w")
    assert made.state()["span"] == 20, "nor less than can be told apart"
    press("0")
    assert made.state()["span"] == whole["span"]
    assert made.state()["from"] == whole["from"]


def test_the_keyboard_walks_and_tab_leaves(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    made.canvas.focus()
    press, state = made.tab.keyboard.press, made.state
    press("Enter")
    assert state()["selected"] == 1, "the first in the middle of the screen"
    press("ArrowDown")
    assert state()["selected"] is not None
    press("ArrowUp")
    assert state()["selected"] == 1
    press("ArrowRight")
    assert state()["selected"] == 7
    press("ArrowRight")
    assert state()["selected"] == 7, "the last stays"
    press("ArrowDown")
    press("ArrowDown")
    assert state()["selected"] == 8, "on the next lane, the nearest"
    said = made.tab.locator("#timeline-said")
    assert said.get_attribute("aria-live") == "polite"
    assert said.inner_text() == "alone, 200.0 µs"
    press("Enter")
    assert state()["span"] == pytest.approx(200_000 / 0.8)
    press("Escape")
    assert state()["selected"] is None
    assert made.tab.evaluate("document.activeElement.className") == "timeline-canvas"
    press("Tab")
    assert not made.tab.evaluate("document.activeElement.matches('.timeline-canvas')")
    press("Shift+Tab")
    assert made.tab.evaluate("document.activeElement.className") == "timeline-canvas"
    press("/")
    assert made.tab.evaluate("document.activeElement.className") == "timeline-input"


def test_dragging_moves_and_with_shift_measures(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    x, y = made.at(9)
    whole, moment = made.state(), made.time(x)
    mouse = made.tab.mouse
    made.canvas.focus()
    made.tab.keyboard.press("w")

    def drag(by: int) -> None:
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + by / 2, y)
        mouse.move(x + by, y)
        mouse.up()

    before = made.time(x)
    drag(150)
    assert made.time(x + 150) == pytest.approx(before, abs=whole["span"] * 1e-6)
    assert made.state()["selected"] is None, "a drag is no click"
    made.tab.keyboard.press("0")
    made.tab.keyboard.down("Shift")
    drag(200)
    made.tab.keyboard.up("Shift")
    first, last = made.state()["range"]
    assert first == pytest.approx(moment, abs=whole["span"] / 500)
    long = whole["span"] * 200 / made.canvas.bounding_box()["width"]
    assert last - first == pytest.approx(long, rel=1e-3)
    assert made.state()["span"] == whole["span"]
    said = made.tab.locator("#timeline-said").inner_text()
    assert said == f"Range of {(last - first) / 1e3:.1f} µs"
    made.tab.keyboard.press("Escape")
    assert made.state()["range"] is None
    made.tab.get_by_role("button", name="Measure a range by dragging").click()
    drag(100)
    assert made.state()["range"] is not None
    assert made.state()["span"] == whole["span"]


def test_a_double_click_fits_the_slice_and_0_shows_all(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    made.tab.mouse.dblclick(*made.at(4))
    box = made.canvas.bounding_box()
    assert made.where(4)["width"] == pytest.approx(0.8 * box["width"], rel=0.01)
    assert made.where(8) is None
    made.tab.keyboard.press("0")
    assert made.where(8) is not None


def test_search_counts_marks_and_goes_from_match_to_match(shown: Callable[..., Timeline]) -> None:
    made = shown(many())
    box = made.tab.get_by_label("Search the names of the timeline")
    count = made.tab.locator(".timeline-count")
    box.fill("HIT")
    until(made.tab, "document.querySelector('.timeline-count').textContent")
    assert count.inner_text() == "20 matches"
    assert made.state()["found"] == 20
    box.press("Enter")
    assert count.inner_text() == "1 of 20"
    assert made.state()["current"] == 550
    x, y = made.at(550)
    assert made.pixel(x, y - 7) == made.colour("--timeline-match")
    assert made.where(550)["width"] > 20, "near enough to be seen"
    box.press("Enter")
    box.press("Enter")
    assert made.state()["current"] == 2550
    assert made.where(2550) is not None
    assert made.where(550) is None
    box.press("Shift+Enter")
    assert made.state()["current"] == 1550
    for _ in range(2):
        box.press("Shift+Enter")
    assert count.inner_text() == "20 of 20", "around the start"
    box.fill("no such name")
    box.press("Enter")
    assert count.inner_text() == "no match"
    box.press("Escape")
    assert made.state()["found"] is None
    assert count.inner_text() == ""


def test_the_pointer_tells_what_is_below_it(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    tip = made.tab.locator(".timeline-tip")
    assert not tip.is_visible()
    made.tab.mouse.move(*made.at(6))
    assert tip.is_visible()
    assert tip.inner_text().split("\n") == ["A::sub", "300.0 µs"]
    box = made.canvas.bounding_box()
    made.tab.mouse.move(box["x"] + 5, box["y"] + 5)
    assert not tip.is_visible()


def test_many_slices_in_a_pixel_are_counted(shown: Callable[..., Timeline]) -> None:
    made = shown(many())
    x, y = made.at(5000)
    made.tab.mouse.move(x, y)
    text = made.tab.locator(".timeline-tip").inner_text()
    assert "more in this pixel" in text
    made.tab.keyboard.press("0")


def test_motion_only_where_it_is_wanted(shown: Callable[..., Timeline]) -> None:
    made = shown(several())
    moving = f"{HOOK}.state().moving"
    made.canvas.focus()
    made.tab.keyboard.press("w")
    assert made.tab.evaluate(moving) is False
    made.tab.emulate_media(reduced_motion="no-preference")
    now = made.tab.evaluate(
        "() => { document.querySelector('.timeline-canvas').dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'w'})); return " + moving + "; }"
    )
    assert now is True
    assert made.state()["moving"] is False


def test_fingers_tap_drag_and_pinch(chromium: Any, shown: Callable[..., Timeline]) -> None:
    context = chromium.new_context(
        viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True
    )
    tab = context.new_page()
    said: list[str] = []
    tab.on("pageerror", lambda error: said.append(str(error)))
    made = shown(several(), tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    tab.touchscreen.tap(*made.at(1))
    assert made.state()["selected"] == 1
    whole, (x, y) = made.state(), made.at(1)
    fingers = context.new_cdp_session(tab)

    def touch(kind: str, *places: float) -> None:
        points = [{"x": place, "y": y, "id": number} for number, place in enumerate(places)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", x - 20, x + 20)
    for reach in (40, 60, 80):
        touch("touchMove", x - reach, x + reach)
    touch("touchEnd")
    pinched = made.state()
    assert pinched["span"] == pytest.approx(whole["span"] / 4, rel=0.05)
    assert pinched["selected"] == 1
    touch("touchStart", x)
    for by in (10, 30, 60):
        touch("touchMove", x + by)
    touch("touchEnd")
    assert made.state()["from"] < pinched["from"]
    assert said == []
    context.close()
