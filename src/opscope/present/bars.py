"""What a call's time was made of, as a small bar of characters."""

from __future__ import annotations

from typing import Any

from rich.text import Text

#: (keys, words, character, plain character, style): one stretch of the bar each.
_STRETCHES = (
    (("python_ns", "native_ns"), "own", "█", "#", "cyan"),
    (("sub_ns",), "sub-ops", "▓", "=", "green"),
    (("wait_ns",), "wait", "░", ".", "yellow"),
    (("dispatch_ns", "runtime_ns"), "dispatch, runtime", "▒", ":", "magenta"),
    (("untracked_ns",), "untracked", "?", "?", "red"),
)


def bar(row: Any, cells: int, *, ascii_only: bool) -> Text:
    """The parts of the row's wall time as shares of `cells`, rounded so that they fill it."""
    text = Text()
    total = sum(_amount(row, keys) for keys, *_ in _STRETCHES)
    if not total:
        return text
    done = drawn = 0
    for keys, _, char, plain, style in _STRETCHES:
        done += _amount(row, keys)
        reach = (2 * done * cells + total) // (2 * total)
        text.append((plain if ascii_only else char) * (reach - drawn), style=style)
        drawn = reach
    return text


def legend(rows: Any, *, ascii_only: bool) -> Text:
    """The characters of the bars, with words, as far as the rows have them."""
    text = Text("bar:")
    natively = any(row.native_ns for row in rows)
    for keys, words, char, plain, style in _STRETCHES:
        if words == "own":
            words = "python or native" if natively else "python"
        if any(_amount(row, keys) for row in rows):
            text.append("  ")
            text.append(plain if ascii_only else char, style=style)
            text.append(f" {words}")
    return text


def _amount(row: Any, keys: tuple[str, ...]) -> int:
    return sum(getattr(row, key) or 0 for key in keys)
