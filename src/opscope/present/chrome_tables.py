"""What a Chrome trace says beside its slices, so that it can be read back as the same session."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray

from opscope._version import __version__
from opscope.model import Op, Process, Session


def tables(session: Session) -> dict[str, Any]:
    """The members of `otherData`: all of a session that is neither a span, a lane nor an arrow.

    Times are nanoseconds of the session's clock, on which `start_ns` is the zero of the trace;
    processes are meant by their number in the trace. Hot lines are not in it, only how many.
    """
    return {
        "producer": "opscope",
        "version": __version__,
        "start_ns": session.start_ns,
        "processes": [
            {"pid": number + 1, "system_pid": process.pid, **_process(process)}
            for number, process in enumerate(session.processes)
        ],
        "ops": [_op(op) for op in session.ops],
        "pauses": _stretches(session.pauses),
        "drops": _stretches(session.drops),
        "sight": [
            {**{"host": sight.host, "version": sight.version, "sees": list(sight.sees)},
             "misses": dict(sight.misses)}
            for sight in session.sight
        ],
        "corrected": session.corrected,
        "lines": len(session.samples),
    }  # fmt: skip


def _process(process: Process) -> dict[str, Any]:
    told = {
        word: getattr(process, word)
        for word in ("machine", "start_ns", "end_ns", "anchors", "complete", "damage", "broken")
    }
    return {
        "command": list(process.command),
        **told,
        "notes": process.notes,
        "versions": dict(process.versions),
        "costs": dict(process.costs),
        "findings": [asdict(finding) for finding in process.findings],
    }


def _op(op: Op) -> dict[str, Any]:
    return {"key": op.key, **asdict(op)}


def _stretches(rows: NDArray[Any]) -> list[dict[str, int]]:
    """Rows of pauses or drops by the names of their fields, but for the process."""
    names = rows.dtype.names or ()
    return [
        {"pid": row[0] + 1, **dict(zip(names[1:], row[1:], strict=True))} for row in rows.tolist()
    ]
