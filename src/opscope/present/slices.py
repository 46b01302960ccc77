"""What slices of a trace look like: those that show spans, and those of a call's own time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.analyse import Own, OwnTime
from opscope.analyse.basis import Basis, basis
from opscope.analyse.rows import KIND_WORDS, PHASE_WORDS
from opscope.analyse.spans import CUSTOM, all_flags, domain, span_path
from opscope.model import Kind, Session, flag_names

Ints = NDArray[np.int64]

#: Kinds of span that are shown by what they were, not by their own name, when a call owns them.
_ROLES = {Kind.WAIT: "wait", Kind.DISPATCH: "dispatch"}


@dataclass(frozen=True, slots=True)
class Face:
    """What many slices share: name, category, and those arguments that they all have.

    `path` is an index into the columns of `Basis`, -1 for none.
    """

    name: str
    category: str
    args: dict[str, Any]
    path: int
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Which spans look alike: `of_span` is the look of each, by row, and the other columns have
    one entry a look. `flags` are those of `all_flags`."""

    of_span: Ints
    name: tuple[int, ...]
    kind: tuple[int, ...]
    phase: tuple[int, ...]
    path: tuple[int, ...]
    flags: tuple[int, ...]

    def rows(self) -> zip[tuple[int, int, int, int, int]]:
        return zip(self.name, self.kind, self.phase, self.path, self.flags, strict=True)


def looks(session: Session) -> Looks:
    """All spans that agree in name, kind, phase, path and flags are one look, in their order."""
    spans, base = session.spans, basis(session)
    flags = np.array(all_flags(base), np.int64)
    columns = (*(spans[key] for key in ("name", "kind", "phase")), base.path, flags)
    first, of_span = distinct(*columns)
    return Looks(of_span, *(tuple(column[first].tolist()) for column in columns))


def faces(session: Session, own: OwnTime) -> tuple[Ints, Ints, tuple[Face, ...]]:
    """The face of each span and of each stretch of own time, and all faces."""
    base, alike = basis(session), looks(session)
    made = [_face(base, *look) for look in alike.rows()]
    phases = session.spans["phase"]
    first, of_own = distinct(base.path[own.call], phases[own.call], own.sort)
    columns = (column[first].tolist() for column in (own.call, own.sort))
    for row, sort in zip(*columns, strict=True):
        made.append(_own_face(base, int(base.path[row]), int(phases[row]), sort))
    return alike.of_span, of_own + (len(made) - len(first)), tuple(made)


def _face(base: Basis, name: int, kind: int, phase: int, path: int, flags: int) -> Face:
    text = base.session.names[name]
    args: dict[str, Any] = {"kind": KIND_WORDS[kind], "phase": PHASE_WORDS[phase]}
    args |= _operator(base, path)
    if path >= 0 and kind in _ROLES:
        args["name"] = text
        text = _ROLES[Kind(kind)]
    if flags:
        args["flags"] = list(flag_names(flags))
    shown = "::".join(span_path(base, kind, path, text))
    return Face(shown, domain(kind, path), args, path, KIND_WORDS[kind])


def _own_face(base: Basis, path: int, phase: int, sort: int) -> Face:
    name = "::".join((*base.shown[path], Own(sort).name.lower()))
    args = {"kind": "own", "phase": PHASE_WORDS[phase], **_operator(base, path)}
    return Face(name, CUSTOM, args, path, "own")


def _operator(base: Basis, path: int) -> dict[str, str | None]:
    if path < 0:
        return {"op": None, "key": None}
    return {"op": base.op[path], "key": base.key[path]}


def distinct(*columns: NDArray[Any]) -> tuple[Ints, Ints]:
    """Where each combination of values is first, by place, and which of them each row has."""
    count = len(columns[0])
    group: Ints = np.zeros(count, np.int64)
    place: Ints
    size = 1
    for column in columns:
        low = int(column.min(initial=0))
        width = int(column.max(initial=0)) - low + 1
        if width > 1 << 31:
            place, width = _ranked(column)
        else:
            place = column.astype(np.int64) - low
        if size > 1 << 31:
            group, size = _ranked(group)
        group, size = group * width + place, size * width
    if size > 4 * count + 1024:
        group, size = _ranked(group)
    # The last to write a place is the first row of that group.
    first = np.full(size, -1, np.int64)
    first[group[::-1]] = np.arange(count - 1, -1, -1)
    there = np.flatnonzero(first >= 0)
    there = there[np.argsort(first[there])]
    number = np.empty(size, np.int64)
    number[there] = np.arange(len(there))
    return first[there], number[group]


def _ranked(values: NDArray[Any]) -> tuple[Ints, int]:
    known, rank = np.unique(values, return_inverse=True)
    return rank.astype(np.int64), len(known)
