"""The page's own scripts and styles, in the order in which they are put together."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

#: Before the first paint.
HEAD = ("theme.js",)
#: Each is a block of its own; only `opscope`, made by the first, is shared.
SCRIPTS = (
    "core.js",
    "parts.js",
    "tip.js",
    "whole.js",
    "histogram.js",
    "lines.js",
    "detail.js",
    "table.js",
    "icicle.js",
    "timeline_data.js",
    "timeline_view.js",
    "timeline_axis.js",
    "timeline_arrows.js",
    "timeline_draw.js",
    "timeline_panel.js",
    "timeline_find.js",
    "timeline_input.js",
    "timeline_keys.js",
    "timeline.js",
    "boot.js",
)
STYLES = (
    "colours.css",
    "parts.css",
    "base.css",
    "hero.css",
    "table.css",
    "detail.css",
    "lines.css",
    "icicle.css",
    "facts.css",
    "timeline.css",
    "narrow.css",
    "print.css",
)


def head() -> str:
    """The script that runs before the first paint."""
    return _joined("scripts", HEAD)


def script() -> str:
    """All other scripts, as one."""
    first, *others = SCRIPTS
    blocks = "\n".join(f"{{\n{_read('scripts', name)}}}" for name in others)
    return f'(() => {{\n"use strict";\n{_read("scripts", first)}\n{blocks}\n}})();\n'


def style() -> str:
    """All styles, as one."""
    return _joined("styles", STYLES)


def template(name: str) -> str:
    """The text of a template. Raises FileNotFoundError where there is none of that name."""
    return _read("templates", name)


def _joined(folder: str, names: tuple[str, ...]) -> str:
    return "\n".join(_read(folder, name) for name in names)


@lru_cache(maxsize=64)
def _read(folder: str, name: str) -> str:
    return (resources.files(__package__) / folder / name).read_text("utf-8")
