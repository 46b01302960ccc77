"""Which columns each kind of report shows, and which of them matter most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opscope.present.grid import Column
from opscope.present.text import shorten, visible
from opscope.present.units import moment_unit, unit_for

#: A text in a column that is not the first is cut to this many cells.
_TEXT_CELLS = 24


@dataclass(frozen=True, slots=True)
class Spec:
    """A column by the key of its rows. `sort`: time, moment, count, id, text
    or "time or none" (where `None` says that it does not apply); a `rare` one is not shown
    where no row has anything in it, and named as such where that is for want of measuring.
    Columns of one `group` share a unit, so that what adds up can be added up by eye."""

    title: str
    key: str
    rank: int
    sort: str = "time"
    rare: bool = False
    style: str = ""
    group: str = ""


_PARTS = (
    Spec("python", "python_ns", 3, style="cyan", group="parts"),
    Spec("native", "native_ns", 3, "time or none", rare=True, style="cyan", group="parts"),
    Spec("sub-ops", "sub_ns", 4, style="green", group="parts"),
    Spec("elsewhere", "elsewhere_ns", 4, style="green", group="parts"),
    Spec("device", "device_ns", 5, rare=True, style="green", group="parts"),
    Spec("wait", "wait_ns", 5, style="yellow", group="parts"),
    Spec("dispatch", "dispatch_ns", 7, rare=True, group="parts"),
    Spec("runtime", "runtime_ns", 8, rare=True, group="parts"),
    Spec("untracked", "untracked_ns", 6, rare=True, style="red", group="parts"),
    Spec("queue", "queue_ns", 9, rare=True),
)

OP = (
    Spec("phase", "phase", 10, "text", rare=True),
    Spec("calls", "calls", 1, "count"),
    Spec("total", "wall_ns", 1, group="parts"),
    Spec("mean", "mean_ns", 2, group="each"),
    *_PARTS,
    Spec("p50", "p50_ns", 11, group="each"),
    Spec("p95", "p95_ns", 11, group="each"),
    Spec("max", "max_ns", 11, group="each"),
    Spec("subs", "subs", 12, "count"),
)

SUB = (
    Spec("kind", "kind", 3, "text"),
    Spec("phase", "phase", 10, "text", rare=True),
    Spec("count", "count", 1, "count"),
    Spec("total", "total_ns", 1, group="total"),
    Spec("self", "self_ns", 2, group="total"),
    Spec("mean", "mean_ns", 2, group="each"),
    Spec("p50", "p50_ns", 5, group="each"),
    Spec("p95", "p95_ns", 5, group="each"),
    Spec("max", "max_ns", 5, group="each"),
)

CALL = (
    Spec("phase", "phase", 10, "text", rare=True),
    Spec("call", "call", 1, "id"),
    Spec("parent", "parent", 11, "id", rare=True),
    Spec("forward", "forward_call", 11, "id", rare=True),
    Spec("start", "start_ns", 2, "moment"),
    Spec("wall", "wall_ns", 1, group="parts"),
    *_PARTS,
    Spec("subs", "subs", 12, "count"),
    Spec("lane", "lane", 8, "text"),
    Spec("process", "process", 13, "id"),
    Spec("flags", "flags", 6, "text", rare=True),
)

LANE = (
    Spec("kind", "kind", 3, "text"),
    Spec("process", "process", 2, "id"),
    Spec("thread", "thread", 4, "id"),
    Spec("spans", "spans", 1, "count"),
    Spec("calls", "calls", 1, "count"),
    Spec("busy", "busy_ns", 1),
    Spec("first", "first_ns", 3, "moment"),
    Spec("last", "last_ns", 3, "moment"),
)

STEP = (
    Spec("index", "index", 1, "id"),
    Spec("start", "start_ns", 2, "moment"),
    Spec("duration", "step_ns", 1),
    Spec("calls", "calls", 1, "count"),
    Spec("in ops", "wall_ns", 1, group="parts"),
    *_PARTS,
    Spec("lane", "lane", 11, "text"),
    Spec("process", "process", 12, "id"),
)


def columns(
    specs: Sequence[Spec], rows: Sequence[Any], encoding: str
) -> tuple[list[Column], list[str]]:
    """The columns with their cells, and the titles of what nobody measured.

    Times of one column, and of a group of columns, share a unit, named under the title.
    """
    made, unmeasured = [], []
    # Of a row without calls nothing could be measured, which tells nothing about the column.
    about = [number for number, row in enumerate(rows) if getattr(row, "calls", 1) != 0]
    table = {spec.key: [getattr(row, spec.key) for row in rows] for spec in specs}
    for spec in specs:
        values = table[spec.key]
        if spec.sort in {"time", "count"} and all(value is None for value in values):
            unmeasured.append(spec.title)
        if spec.rare and all(value in {None, 0, "", "none", ()} for value in values):
            some = spec.sort == "time" and any(values[number] is None for number in about)
            if some and spec.title not in unmeasured:
                unmeasured.append(spec.title)
            continue
        made.append(_column(spec, values, _peers(spec, specs, table), encoding))
    return made, unmeasured


def _peers(spec: Spec, specs: Sequence[Spec], table: dict[str, list[Any]]) -> list[Any]:
    """The values that must share a unit with this column's."""
    group = [other for other in specs if other.group == spec.group] if spec.group else [spec]
    return [value for other in group for value in table[other.key]]


def _column(spec: Spec, values: Sequence[Any], peers: Sequence[Any], encoding: str) -> Column:
    empty = all(value is None for value in values)
    if spec.sort == "moment" or spec.sort.startswith("time"):
        unit = (
            moment_unit(values)
            if spec.sort == "moment"
            else unit_for(peers, fine=spec.group == "each")
        )
        cells = tuple(unit.show(value) for value in values)
        return Column(spec.title, cells, spec.rank, unit.name, style=spec.style, empty=empty)
    if spec.sort == "text":
        cells = tuple(_text(value, encoding) for value in values)
        return Column(spec.title, cells, spec.rank, right=False)
    pattern = "{:,}" if spec.sort == "count" else "{}"
    cells = tuple("-" if value is None else pattern.format(value) for value in values)
    return Column(spec.title, cells, spec.rank, empty=empty)


def _text(value: Any, encoding: str) -> str:
    if isinstance(value, tuple):
        value = ", ".join(value)
    if value in {"", "none"}:
        return "-"
    return shorten(visible(value, encoding), _TEXT_CELLS, "~" if encoding == "ascii" else "…")
