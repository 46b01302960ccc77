"""The spans as `analyse.span_records` tells them, by column: texts once for all that share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import basis
from opscope.analyse.rows import KIND_WORDS, PHASE_WORDS
from opscope.analyse.spans import domain, span_path
from opscope.model import Session, flag_names
from opscope.present.slices import looks

Ints = NDArray[np.int64]
Texts = Callable[[dict[str, Any]], str]

#: The keys of `SPAN_KEYS` that are the same for all spans of one look, and for all of one lane.
LOOK_KEYS = ("kind", "phase", "name", "op", "key", "path", "domain", "flags")
LANE_KEYS = ("process", "lane", "thread")

#: How many spans are told at a time.
_PORTION = 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """`numbers` are the columns of whole numbers; of those that may lack, `missing` says where they
    do. `look` and `lane` are indices, by row, into `looks` and `lanes`: records with the keys
    `LOOK_KEYS` and `LANE_KEYS`, lists as tuples."""

    numbers: dict[str, Ints]
    missing: dict[str, NDArray[np.bool_]]
    look: Ints
    lane: Ints
    looks: tuple[dict[str, Any], ...]
    lanes: tuple[dict[str, Any], ...]


def records(session: Session) -> Records:
    """One entry for each span, in the session's order. Nanoseconds from the session's start."""
    base, spans, zero = basis(session), session.spans, session.start_ns
    around = base.attribution.nesting.parent
    parent = np.where(around >= 0, spans["id"][around], 0) if len(spans) else around
    submitted, cpu = spans["submitted_ns"], spans["cpu_ns"]
    alike = looks(session)
    numbers = {
        "id": spans["id"],
        "owner": spans["owner"],
        "parent": parent,
        "start_ns": spans["start_ns"] - zero,
        "end_ns": spans["end_ns"] - zero,
        "submitted_ns": submitted - zero,
        "cpu_ns": cpu,
    }
    missing = {
        "owner": spans["owner"] == 0,
        "parent": parent == 0,
        "submitted_ns": submitted <= 0,
        "cpu_ns": cpu < 0,
    }
    rows = []
    for name, kind, phase, path, flags in alike.rows():
        text, known = session.names[name], path >= 0
        rows.append(
            {
                **{"kind": KIND_WORDS[kind], "phase": PHASE_WORDS[phase], "name": text},
                "op": base.op[path] if known else None,
                "key": base.key[path] if known else None,
                "path": span_path(base, kind, path, text),
                **{"domain": domain(kind, path), "flags": tuple(flag_names(flags))},
            }
        )
    lanes = tuple(
        {"process": pid, "lane": lane.name, "thread": lane.thread or None}
        for pid, lane in zip(base.process_ids(), session.lanes, strict=True)
    )
    return Records(numbers, missing, alike.of_span, spans["lane"], tuple(rows), lanes)


def portions(
    found: Records, none: str, look: Texts, flags: Texts, lane: Texts
) -> Iterator[Iterator[tuple[Any, ...]]]:
    """For each span, in the order of `SPAN_KEYS` and some thousand at a time: id, owner and parent,
    the text of its look but for the flags, that of its lane, the other numbers, that of the flags.
    Texts are asked for once. `none` stands for numbers that lack.
    """
    heads, tails = ([text(record) for record in found.looks] for text in (look, flags))
    places = [lane(record) for record in found.lanes]
    for begin in range(0, len(found.look), _PORTION):
        part = slice(begin, begin + _PORTION)
        ids, owners, parents, *times = (
            _listed(column[part], found.missing.get(key), part, none)
            for key, column in found.numbers.items()
        )
        of_look = found.look[part].tolist()
        yield zip(
            *(ids, owners, parents),
            [heads[number] for number in of_look],
            [places[number] for number in found.lane[part].tolist()],
            *times,
            [tails[number] for number in of_look],
            strict=True,
        )


def _listed(
    values: Ints, missing: NDArray[np.bool_] | None, part: slice, none: str
) -> list[int | str]:
    if missing is None:
        listed: list[int | str] = values.tolist()
        return listed
    mixed: Any = values.astype(object)
    mixed[missing[part]] = none
    answer: list[int | str] = mixed.tolist()
    return answer
