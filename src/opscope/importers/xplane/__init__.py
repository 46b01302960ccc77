"""XLA's traces (`*.xplane.pb`, from `jax.profiler.trace`) as a session.

Every event that has a time becomes one span on the lane of its line. On threads thunks, jitted
functions and what JAX does in Python are operators; what its runtime does around them, `end:`
marks, thread-pool marks and garbage collection are chores; what JAX does before a callback's
function is its wrapper; the first of the two marks of a waiting buffer is the wait up to the
second. An annotation looks like any other event: one is taken for the user's where its name is
none of JAX's, it says nothing that only XLA says, and it lies where Python code can run. Frames
of JAX's Python tracer, and the second of the two equal events of a jitted function, are
annotations too.

On devices the same work is told up to six times: steps, modules, instructions, name scopes,
framework operators, source lines, streams. It is counted once: where there are streams only
what is on them is device work, else only the innermost instructions; the rest stays, each line a
lane, as annotations. An instruction that calls a custom operator on a device without streams is
that call itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late import Customs, Events
from opscope.importers.building import Builder
from opscope.importers.xplane.events import FAR, Table
from opscope.importers.xplane.hlo import custom_calls, has_programs
from opscope.importers.xplane.names import GLUE, Operators, is_device
from opscope.importers.xplane.protobuf import Wire
from opscope.importers.xplane.xspace import Space, read_space
from opscope.model import Kind, Phase, Rows, Session

Bools = NDArray[np.bool_]

#: Lines count from the beginning of the recording if they begin before this, else from 1970.
_EARLY_NS = 10**17


def read(data: bytes, builder: Builder) -> Session:
    """The session of a file's bytes. Of a damaged file what can be read of it; never raises."""
    wire = Wire(data)
    space = read_space(wire)
    operators = Operators(builder, custom_calls(space.planes), has_programs(space.planes))
    chores: set[int] = set()
    tables = [
        Table(plane, number, builder, operators, chores).events()
        for number, plane in enumerate(space.planes)
        if plane.lines
    ]
    events = Events(*(np.empty(0, np.int64) for _ in range(10)))
    for table in tables:
        events = events.and_also(table) if len(events) else table
    rows = builder.joined(events, Customs(forward={entry: entry for entry in operators.entries}))
    builder.quality.count(
        "calls right inside a call of the same operator (told as one)", len(events) - len(rows)
    )
    _settle(rows, chores, operators, builder.name(GLUE))
    return _session(builder, space, rows)


def _settle(rows: Rows, chores: set[int], operators: Operators, glue: int) -> None:
    """What joining cannot know: chores are nobody's, and which calls belong to a gradient."""
    chore = np.isin(rows["name"], sorted(chores)) & (rows["kind"] == Kind.OP)
    rows["kind"][chore], rows["owner"][chore] = Kind.RUNTIME, 0
    rows["phase"][chore], rows["flags"][chore] = Phase.NONE, 0
    call = rows["kind"] == Kind.CALL
    _settle_glue(rows, call & np.isin(rows["name"], sorted(operators.callbacks)), glue)
    back = call & np.isin(rows["name"], sorted(operators.backward))
    rows["phase"][back] = Phase.BACKWARD
    rows["phase"][~call & np.isin(rows["owner"], rows["id"][back])] = Phase.BACKWARD


def _settle_glue(rows: Rows, callback: Bools, glue: int) -> None:
    """Before JAX calls a callback's function it puts the arguments on a device: what comes first
    inside, where it is that, is JAX's wrapper with all that it does."""
    own = np.flatnonzero(np.isin(rows["owner"], rows["id"][callback]) & (rows["kind"] == Kind.OP))
    own = own[np.lexsort((-rows["end_ns"][own], rows["start_ns"][own], rows["owner"][own]))]
    owner = rows["owner"][own]
    head = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])[: len(own)])
    until = np.where(rows["name"][own[head]] == glue, rows["end_ns"][own[head]], -FAR)
    size = np.diff(np.append(head, len(own)))
    rows["kind"][own[rows["end_ns"][own] <= np.repeat(until, size)]] = Kind.DISPATCH


def _session(builder: Builder, space: Space, rows: Rows) -> Session:
    stats = {name: value for plane in space.planes for name, value in plane.stats.items()}
    stamps = [line.timestamp_ns for plane in space.planes for line in plane.lines]
    begun = stats.get("profile_start_time")
    wall = begun if isinstance(begun, int) and 0 < begun < FAR else None
    if stamps and min(stamps) > _EARLY_NS:
        wall = 0
    device = any(is_device(plane.name) for plane in space.planes)
    return builder.session(
        rows,
        sees=(
            *("calls", "sub-operators", "ranges", "waits", "dispatch", "runtime"),
            *(("device",) if device else ()),
        ),
        misses={
            "cpu": "the file holds no CPU time: what a callback did itself is untracked",
            "tasks": "the file does not say which call handed work to another thread",
            "functions": "the file holds no name of a callback's function, only JAX's path to it",
            "custom_vjp": "custom_vjp and custom_jvp functions leave no trace in a program",
            **({} if device else {"device": "the file holds no plane of a device"}),
        },
        version=str(stats.get("jax_version", "")),
        wall_ns=wall,
        damage=_damage(space),
        notes=(
            *(f"the recording says: {text}" for text in (*space.errors, *space.warnings)),
            *(f"recorded on {host}" for host in space.hosts),
        ),
    )


def _damage(space: Space) -> str:
    wire = space.wire
    if not wire.data:
        return "the file is empty"
    if not wire.breaks:
        return "" if space.planes else "the file holds no planes"
    first = ", ".join(str(place) for place in wire.places)
    return f"{wire.breaks} messages are cut or damaged, the first at byte {first}"
