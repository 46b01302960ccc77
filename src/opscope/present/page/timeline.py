"""The data of the page's timeline: lanes, slices and arrows in few bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.analyse.basis import basis
from opscope.analyse.rows import time_columns
from opscope.model import Kind, LinkKind, Session
from opscope.present.arrows import arrows
from opscope.present.chrome import _names
from opscope.present.edges import Layout, edges, layout
from opscope.present.page.packing import signed, steps, varints
from opscope.present.page.thinning import Thinned, thinned
from opscope.present.threads import threads

Ints = NDArray[np.int64]

#: What the details of a call show, in this order: first the parts that add up to its wall time.
TIMES = (
    *("python_ns", "native_ns", "sub_ns", "wait_ns", "dispatch_ns", "runtime_ns", "untracked_ns"),
    *("elsewhere_union_ns", "device_union_ns", "queue_ns", "span_ns"),
)


def packed(session: Session, limit: int = 200_000) -> dict[str, Any]:
    """All that the timeline draws, as values that JSON has; times count from the session's start.

    Columns have one entry for each slice, sorted by row (a depth of a lane), then by start; they
    are `packing.varints`. `gap` is the time since the slice before it in its row ended (in the
    first of a row since the start), `owner` how many slices back its owner is, 0 for none. More
    than `limit` spans, or as many stretches of own time, are thinned, which `left` tells.
    """
    where = threads(session)
    laid = layout(session, where)
    thin = thinned(session, laid, limit)
    kept = np.flatnonzero(thin.kept)
    depth = _depths(laid)[kept]
    start, end, thread = laid.start_ns[kept], laid.end_ns[kept], laid.thread[kept]
    order = np.lexsort((end, start, depth, thread))
    shown = kept[order]
    start, end, thread, depth = start[order], end[order], thread[order], depth[order]

    fresh = np.ones(len(shown), bool)
    fresh[1:] = (thread[1:] != thread[:-1]) | (depth[1:] != depth[:-1])
    before = np.zeros(len(shown), np.int64)
    before[1:] = np.where(fresh[1:], 0, end[:-1])
    edge = np.flatnonzero(fresh)
    counts = np.diff(np.append(edge, len(shown)))
    rows = zip(thread[edge].tolist(), depth[edge].tolist(), counts.tolist(), strict=True)

    place = np.full(len(laid.thread), -1, np.int64)
    place[shown] = np.arange(len(shown))
    texts = _Texts()
    face, faces = _faces(session, laid, shown, texts)
    return {
        "length_ns": int(laid.end_ns.max(initial=0)),
        "processes": _places(session, where, "process_name"),
        "lanes": _places(session, where, "thread_name"),
        "rows": [list(row) for row in rows],
        "texts": texts.every,
        "faces": faces,
        "gap": varints(start - before),
        "length": varints(end - start),
        "face": varints(face),
        "id": varints(signed(steps(laid.ident[shown]))),
        "owner": varints(_owners(session, laid, place, shown)),
        "calls": _calls(session, laid, shown),
        "arrows": _arrows(session, laid, place),
        "left": _left(laid, thin),
    }


def _left(laid: Layout, thin: Thinned) -> dict[str, Any]:
    return {
        "spans": thin.spans,
        "of_spans": laid.spans,
        "own": thin.own,
        "of_own": len(laid.thread) - laid.spans,
        "bins": thin.bins,
        "where": [number for entry in thin.where for number in entry],
    }


def _depths(laid: Layout) -> Ints:
    """How many slices of its thread each lies in."""
    depth = np.zeros(len(laid.thread), np.int64)
    for of_thread in edges(laid):
        open_now = np.cumsum(np.where(of_thread.begins, 1, -1))
        depth[of_thread.slice[of_thread.begins]] = open_now[of_thread.begins] - 1
    return depth


def _places(session: Session, where: Any, event: str) -> list[dict[str, Any]]:
    """The arguments of Chrome's metadata, in the order of their numbers."""
    found = []
    for each in map(json.loads, _names(session, where)):
        if each["name"] == event:
            found.append({"process": each["pid"] - 1, **each["args"]})
    return found


class _Texts:
    """Every text once, by number."""

    def __init__(self) -> None:
        self.every: list[str] = []
        self._known: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """-1 for None."""
        if text is None:
            return -1
        if text not in self._known:
            self._known[text] = len(self.every)
            self.every.append(text)
        return self._known[text]


def _faces(
    session: Session, laid: Layout, shown: Ints, texts: _Texts
) -> tuple[Ints, list[list[int]]]:
    """The face of each slice, and of each face as numbers of texts: its short name, its name in
    full, kind, phase, operator, key, place in the source, and flags."""
    base, spans = basis(session), session.spans
    _, first, face = np.unique(laid.face[shown], return_index=True, return_inverse=True)
    faces = []
    for item in shown[first].tolist():
        look = laid.faces[int(laid.face[item])]
        short = look.name
        if item >= laid.spans:
            short = look.name[len("::".join((*base.shown[look.path], ""))) :]
        elif Kind(int(spans["kind"][item])) is Kind.CALL:
            short = base.shown[look.path][-1]
        else:
            short = session.names[int(spans["name"][item])]
        known = look.path >= 0
        about = (short, look.name, look.kind, look.args["phase"], look.args["op"])
        source = base.site[look.path] if known else None
        entry = (*about, look.args["key"], source, *look.args.get("flags", ()))
        faces.append([texts.number(text) for text in entry])
    return face.astype(np.int64), faces


def _owners(session: Session, laid: Layout, place: Ints, shown: Ints) -> Ints:
    """How far back each slice's owner is (`signed`); one that was left out is passed over."""
    ids = session.spans["id"]
    by_id = np.argsort(ids, kind="stable")
    call = by_id[np.searchsorted(ids[by_id], laid.owner[laid.spans :])]
    up = np.concatenate((basis(session).attribution.owner, call))
    owner = up[shown]
    while (hidden := (owner >= 0) & (place[owner] < 0)).any():
        owner = np.where(hidden, up[owner], owner)
    return signed(np.where(owner >= 0, np.arange(len(shown)) - place[owner], 0))


def _calls(session: Session, laid: Layout, shown: Ints) -> dict[str, str]:
    """Columns of the calls among the slices, in their order: each `TIMES`, plus 1; 0: unknown."""
    attribution = basis(session).attribution
    is_span = shown < laid.spans
    called = np.zeros(len(shown), bool)
    called[is_span] = session.spans["kind"][shown[is_span]] == Kind.CALL
    number = np.searchsorted(attribution.calls, shown[called])
    columns = time_columns(attribution)
    return {key: varints(columns[key][number] + 1) for key in TIMES}


def _arrows(session: Session, laid: Layout, place: Ints) -> dict[str, Any]:
    """By target: its slice (`steps`), how far back the source is (`signed`), the kind, and when it
    leaves the source, counted from that one's start. A source that was left out is replaced by
    what is around it."""
    drawn, parent = arrows(session), basis(session).attribution.nesting.parent
    source = drawn.source
    while (hidden := (source >= 0) & (place[source] < 0)).any():
        source = np.where(hidden, parent[source], source)
    kept = np.flatnonzero((place[drawn.target] >= 0) & (source >= 0) & (source != drawn.target))
    source, target, kind = source[kept], drawn.target[kept], drawn.kind[kept]
    moment = drawn.moment_ns[kept] - session.start_ns
    late = np.maximum(moment - laid.start_ns[source], 0)
    source, target = place[source], place[target]
    order = np.lexsort((source, target))
    return {
        "kinds": {int(word): word.name.lower() for word in LinkKind},
        "target": varints(steps(target[order])),
        "source": varints(signed((target - source)[order])),
        "kind": varints(kind[order]),
        "late": varints(late[order]),
    }
