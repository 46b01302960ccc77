"""Contrast by the rules of WCAG 2.2 AA, computed from the page's own variables, in both themes."""

from __future__ import annotations

import re

import pytest

from opscope.present.page import assets

PARTS = (
    *("python", "native", "sub", "wait", "dispatch", "runtime", "untracked"),
    *("elsewhere", "device", "queue"),
)
TEXT, SHAPE = 4.5, 3.0
GROUNDS = ("page", "surface", "raised", "hover")


def themes() -> dict[str, dict[str, str]]:
    """The variables of each theme."""
    text = (assets.style().partition("*, *::before")[0]).partition("/* One hue")[0]
    light, dark = re.findall(r":root(?:\[data-theme=\"dark\"\])? \{([^}]*)\}", text)
    first = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    return {
        "light": first,
        "dark": {**first, **dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))},
    }


def of_timeline() -> dict[str, dict[str, str]]:
    """What the timeline names beside them, in each theme."""
    text = assets._read("styles", "timeline.css")
    blocks = re.findall(r"#timeline \{([^}]*)\}", text)[:2]
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in blocks)
    return {"light": light, "dark": {**light, **dark}}


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_measure_is_right() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme: str) -> None:
    colours = themes()[theme]
    pairs = [(text, ground) for text in ("ink", "soft", "link", "warn") for ground in GROUNDS]
    pairs += [("page", "ink"), ("ink", "mark")]
    pairs += [(f"on-{part}", f"part-{part}") for part in PARTS]
    poor = {
        pair: round(ratio, 2)
        for pair in pairs
        if (ratio := contrast(colours[pair[0]], colours[pair[1]])) < TEXT
    }
    assert poor == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_slices_of_the_timeline_can_be_read_and_told_from_what_is_behind_them(theme: str) -> None:
    colours = {**themes()[theme], **of_timeline()[theme]}
    fills = ("call", "range", "plain")
    pairs = [(f"timeline-on-{fill}", f"timeline-{fill}", TEXT) for fill in fills]
    # Lanes are on the surface; swatches of the legend on the page.
    shapes = (*fills, "match", "select")
    pairs += [(f"timeline-{fill}", on, SHAPE) for fill in shapes for on in ("surface", "page")]
    # The length of a measured range, and buttons that are pressed.
    pairs += [("surface", "timeline-select", TEXT), ("page", "ink", TEXT)]
    poor = {
        (one, other): round(ratio, 2)
        for one, other, least in pairs
        if (ratio := contrast(colours[one], colours[other])) < least
    }
    assert poor == {}


def test_the_timeline_names_its_colours_at_its_top_only() -> None:
    text = assets._read("styles", "timeline.css").partition(".p-call")[2]
    assert text
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=[;, )])", text)
    light, dark = of_timeline().values()
    assert len(light) == 8
    assert set(light) == set(dark)
    assert all(light[name] != dark[name] for name in light if "-on-" not in name)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_edges_and_focus_can_be_told_from_what_is_behind_them(theme: str) -> None:
    colours = themes()[theme]
    shapes = [f"part-{part}" for part in PARTS] + ["edge", "focus"]
    poor = {
        (shape, ground): round(ratio, 2)
        for shape in shapes
        for ground in GROUNDS
        if (ratio := contrast(colours[shape], colours[ground])) < SHAPE
    }
    assert poor == {}


def test_no_other_colour_is_written_anywhere() -> None:
    for name in assets.STYLES[1:]:
        if name == "timeline.css":  # names its own, beside these, at its top
            continue
        text = assets._read("styles", name)
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=[;, )])", text), name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_parts_differ_by_more_than_hue(theme: str) -> None:
    colours = themes()[theme]
    assert len({colours[f"part-{part}"] for part in PARTS}) == len(PARTS)
    text = assets._read("styles", "parts.css")
    # Of the parts that stand beside each other in a bar, only Python and sub-operators are plain.
    plain = [p for p in PARTS[:7] if "--pattern" not in text.split(f".p-{p} {{")[1].split("}")[0]]
    assert plain == ["python", "sub"]
