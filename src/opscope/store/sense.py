"""What facts from a file must be. Behind the reader nobody looks again.

A frame may be whole and yet say what nobody can have meant: another program wrote it, or a newer
opscope. Everything here raises for that (any exception will do), but for rows of spans: of those
the ones without sense are told apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.model import Kind, Lane, Op, Phase, Process, Rows, Sight

_LEAST, _MOST = -(2**63), 2**63 - 1
#: Every file may have so many names and lanes; a larger one as many as it has bytes.
_ENTRIES = 1 << 16

_OF_OP = {
    **dict.fromkeys(("host", "kind", "name", "qualified", "overload", "file"), str),
    **{"registration": int, "line": int, "native": bool},
}


def limit(size: int) -> int:
    """What no index is larger than in a file of that many bytes."""
    return max(size, _ENTRIES)


def whole(value: Any) -> int:
    """A whole number of 64 bits; other numbers are cut to one."""
    number = int(value)
    if not _LEAST <= number <= _MOST:
        raise ValueError(f"{number:.3g} has no room in 64 bits")
    return number


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def lane(row: list[Any]) -> Lane:
    """[name, kind, thread]"""
    return Lane(text(row[0]), text(row[1]), 0, whole(row[2]))


def op(row: list[Any]) -> tuple[int, Op]:
    """[index of its name, its fields]"""
    for field, value in row[1].items():
        if not isinstance(value, _OF_OP[field]):
            raise TypeError(f"{field} of an operator cannot be {value!r:.40}")
    return whole(row[0]), Op(**row[1])


def sight(row: dict[str, Any]) -> Sight:
    """The fields of `Sight`."""
    sees = tuple(map(text, row["sees"]))
    return Sight(text(row["host"]), text(row["version"]), sees, _texts(row["misses"]))


def sample(row: dict[str, Any]) -> dict[str, Any]:
    """Texts and whole numbers by name."""
    return {word: value if isinstance(value, str) else whole(value) for word, value in row.items()}


def process(row: dict[str, Any]) -> Process:
    """What stands at the beginning of a file."""
    return Process(
        pid=whole(row["pid"]),
        command=tuple(map(text, row["command"])),
        machine=text(row["machine"]),
        versions=_texts(row["versions"]),
        start_ns=whole(row["start_ns"]),
    )


def spans(rows: Rows, most: int) -> NDArray[np.bool_]:
    """Which rows can be: of a kind and a phase that there are, with indices from 0 up to `most`."""
    sound = (rows["kind"] >= min(Kind)) & (rows["kind"] <= max(Kind)) & (rows["id"] > 0)
    sound &= (rows["phase"] >= min(Phase)) & (rows["phase"] <= max(Phase))
    for word in ("name", "lane", "submitted_lane"):
        sound &= (rows[word] >= 0) & (rows[word] < most)
    return sound


def _texts(row: dict[str, Any]) -> dict[str, str]:
    return {text(word): text(value) for word, value in row.items()}
