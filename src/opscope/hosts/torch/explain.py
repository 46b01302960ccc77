"""A finished profile of the user's own as a session: torch's events alone, no hooks."""

from __future__ import annotations

import os
import platform
import sys
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope._version import __version__
from opscope.attribution.late import Context, join
from opscope.errors import UsageError
from opscope.hosts.torch.columns import Tables, read
from opscope.hosts.torch.knowledge import customs
from opscope.hosts.torch.known import Dispatcher
from opscope.hosts.torch.operators import HOST, existing
from opscope.model import LINK, SPAN, Lane, Process, Session, Sight, no_rows
from opscope.record import tables


def explain(profiled: Any) -> Session:
    """See `opscope.explain`."""
    inner = getattr(profiled, "profiler", None) or profiled
    results = getattr(inner, "kineto_results", None)
    if results is None:
        raise UsageError("this torch profile has collected nothing yet: stop it first")
    known = tables.Tables()
    dispatch = known.name("dispatch")
    columns = read(list(results.events()), _tables(known))
    seen = [known.names[entry] for entry in np.unique(columns.name).tolist()]
    custom = customs(existing().all(), seen, Dispatcher(), known.name, known.op, hooked=False)
    joined = join(columns, no_rows(SPAN), Context(custom, _ids(), dispatch))
    links = np.array(list(joined.links), LINK) if joined.links else no_rows(LINK)
    start_ns = int(columns.start_ns.min(initial=np.iinfo(np.int64).max)) if len(columns) else 0
    end_ns = int(columns.end_ns.max(initial=0))
    notes: tuple[str, ...] = ()
    if joined.unattributed:
        notes = (f"{joined.unattributed:,} device spans have no launching operator",)
    version = str(sys.modules["torch"].__version__)
    return Session(
        spans=joined.rows,
        names=tuple(known.names),
        lanes=tuple(known.lanes),
        links=links,
        ops=tuple(op for _, op in known.ops),
        op_names=tuple(entry for entry, _ in known.ops),
        sight=(_sight(version),),
        processes=(
            Process(
                pid=os.getpid(),
                command=tuple(sys.orig_argv),
                versions={"opscope": __version__, "python": platform.python_version()},
                start_ns=start_ns,
                end_ns=end_ns,
                anchors=((start_ns, start_ns),),
                complete=True,
                notes=notes,
            ),
        ),
    )


def _tables(known: tables.Tables) -> Tables:
    def lane(thread: int, device: int, is_device: bool) -> int:
        if is_device:
            name = f"device {device} stream {thread}"
            return known.lane((device, thread), Lane(name, "stream"))
        return known.lane(thread, Lane(f"thread {thread}", thread=thread))

    return Tables(known.name, lane, lambda wall_ns: wall_ns)


def _ids() -> Any:
    fresh = count(1)

    def ids(number: int) -> NDArray[np.int64]:
        return np.fromiter((next(fresh) for _ in range(number)), np.int64, number)

    return ids


def _sight(version: str) -> Sight:
    return Sight(
        HOST,
        version,
        ("calls", "sub-operators", "ranges", "backward", "device"),
        {
            "cpu": "torch's profiler takes no CPU time: what an operator did itself is untracked",
            "dispatch": "torch's profiler does not tell a function from the wrapper around it",
            "tasks": "work handed to other threads is not joined to the call that handed it over",
        },
    )
