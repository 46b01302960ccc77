"""Profiles of MXNet 1.x, written by its own profiler as Chrome's JSON.

What a call is in such a file: MXNet takes the event of a custom operator away and leaves the time
in its function, as `MyOp::pure_python`, on the thread of that call; and it puts the operator's name
before what that thread makes the engine run, `MyOp::_plus_scalar`, which runs on the engine's
threads. So each `pure_python` slice is one call, and what has the prefix is a sub-operator of one
of the calls of that operator: the one that the times speak for (`mxnet_calls`). A call that raised
leaves nothing but the wait at its end. A call inside another shows as `Outer::Custom` from when the
engine handed it out until all of it was done, and is the call that began in that time.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from opscope.importers.building import Builder
from opscope.importers.documents import Document
from opscope.importers.mxnet.events import Event, Table
from opscope.importers.mxnet.names import API
from opscope.importers.mxnet.rows import BULKS, rows_of
from opscope.model import Kind, Rows, Session

#: What such a file never tells, whatever was switched on.
_MISSES = {
    "cpu": "the file holds no CPU time: what a call did itself and what it waited are one",
    "callers": "a sub-operator has the name of its operator, not of its call, and a call inside "
    "another has neither: they are given to calls by time",
    "raised calls": "a call that raised has no slice: not known when and how long, and on the "
    "NaiveEngine not even that there was one",
    "calls cut by the profile": "a call that was on when profiling began or ended has no slice",
    "other threads": "what a call ran on threads of its own has no prefix",
    "backward": "the file does not say which forward call a backward call belongs to, nor whether "
    "`_backward_X` is the backward function of `X` or an operator of that name",
    "dispatch": "the file does not tell an operator's function from the wrapper around it",
    "submission": "the file does not say when an operator was pushed",
    "device": "operators on a device are timed on the thread that serves it",
}
#: Time stamps from here on (2001) are taken to count from 1970.
_SINCE_1970_NS = 10**18


def read(stream: BinaryIO, builder: Builder) -> Session:
    """The session of one profile. Never raises for content."""
    document = Document(stream, builder.quality)
    table = Table(builder.quality)
    for batch in document.batches(Event):
        table.take(batch)
    rows = rows_of(table, builder)
    waits = bool((rows["kind"] == Kind.WAIT).any())
    misses = dict(_MISSES)
    if not waits:
        misses["waits"] = "the file holds no calls of the C interface (profile_api was off)"
    begins_ns = int(rows["start_ns"].min()) if len(rows) else 0
    return builder.session(
        rows,
        sees=("calls", "sub-operators", "runtime", *(("waits",) if waits else ())),
        misses=misses,
        wall_ns=0 if begins_ns >= _SINCE_1970_NS else None,
        damage=document.damage,
        notes=_notes(table, builder, rows),
    )


def _notes(table: Table, builder: Builder, rows: Rows) -> list[str]:
    notes = []
    if not builder.ops:
        why = "none was called from its beginning to its end, or profile_imperative was off"
        if API in table.cats.all() and not np.isin(rows["kind"], (Kind.OP, Kind.CALL)).any():
            why = "profile_imperative and profile_symbolic were off"
        notes.append(f"no custom operator is in the file: {why}")
    if any(finding.what == BULKS for finding in builder.quality.findings()):
        notes.append(
            "operators ran in bulk: MXNET_EXEC_BULK_EXEC_TRAIN=0, MXNET_EXEC_BULK_EXEC_INFERENCE=0 "
            "and mx.engine.set_bulk_size(0) show each of them"
        )
    if table.others:
        told = ", ".join(f"{n} of phase {ph!r}" for ph, n in sorted(table.others.items()))
        notes.append(f"events that take no time (counters, marks) are not shown: {told}")
    return notes
