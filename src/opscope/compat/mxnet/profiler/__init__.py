"""`mx.profiler`: MXNet's calls over one recording of opscope's.

Every dump writes one whole document of everything so far. Dumps and tables consume nothing, and
any order and number of all calls works, also from inside operators.
"""

from __future__ import annotations

import warnings
from typing import Any

from opscope.compat.mxnet.absent import lacks
from opscope.compat.mxnet.base import MXNetError
from opscope.compat.mxnet.profiler import aggregate, show
from opscope.compat.mxnet.profiler.marks import timeline
from opscope.compat.mxnet.profiler.objects import Counter, Domain, Event, Frame, Marker, Task
from opscope.compat.mxnet.profiler.output import output as _output
from opscope.compat.mxnet.profiler.switch import recording

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "dump",
    "dump_profile",
    "dumps",
    "pause",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "set_config",
    "set_state",
    "state",
]

__getattr__ = lacks("mx.profiler", lambda: __all__)


def set_config(**kwargs: Any) -> None:
    """Say what is recorded and where it is written: filename, profile_all, profile_imperative,
    continuous_dump, dump_period. Other keywords of MXNet's are accepted; MXNetError for the rest.
    """
    recording.config.take(kwargs)
    recording.switch()
    _output.follow(recording.running)


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """'run' or 'stop'. Running again goes on with the same recording, and ends a pause."""
    _only_worker(profile_process)
    if state not in ("run", "stop"):
        raise ValueError(f"the profiler's state is 'run' or 'stop', not {state!r}")
    recording.switch(running=state == "run", paused=False)
    _output.due |= state == "run"
    _output.follow(recording.running)


def state() -> str:
    """'run' or 'stop'."""
    return "run" if recording.running else "stop"


def pause(profile_process: str = "worker") -> None:
    """Record nothing until `resume`; that time does not count."""
    _only_worker(profile_process)
    recording.switch(paused=True)


def resume(profile_process: str = "worker") -> None:
    """Go on after `pause`."""
    _only_worker(profile_process)
    recording.switch(paused=False)


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write everything recorded so far as one document. Blocks; OSError if it cannot be written.

    With `finished`, nothing is written any more without being asked for, until the next 'run'.
    """
    _only_worker(profile_process)
    _output.write()
    if finished:
        _output.due = False
        _output.follow(False)


def dumps(
    reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False
) -> str:
    """The table of everything recorded so far, or since the last one with `reset`, as text. Blocks.

    Times are milliseconds. `pure_python` is Python and nothing else, `wait` is apart from it.
    """
    for name, value, allowed in (
        ("format", format, show.FORMATS),
        ("sort_by", sort_by, show.SORTS),
        ("ascending", ascending, (True, False)),
        ("reset", reset, (True, False)),
    ):
        if value not in allowed:
            raise ValueError(f"{name} is one of {', '.join(map(str, allowed))}, not {value!r}")
    with _output.lock:
        session = recording.session()
        table = aggregate.table(session, timeline, _output.seen)
        if reset:
            _output.seen.add(session, timeline)
    table = show.ordered(table, sort_by, bool(ascending))
    return show.as_json(table) if format == "json" else show.as_text(table)


def _only_worker(process: str) -> None:
    if process != "worker":
        raise MXNetError(f"there is only the process 'worker' here, not {process!r}")


# Names MXNet has retired


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """Deprecated: `set_config`."""
    _retired("profiler_set_config", "set_config")
    set_config(**{f"profile_{mode}": True, "filename": filename})


def profiler_set_state(state: str = "stop") -> None:
    """Deprecated: `set_state`."""
    _retired("profiler_set_state", "set_state")
    set_state(state)


def dump_profile() -> None:
    """Deprecated: `dump`."""
    _retired("dump_profile", "dump")
    dump(True)


def _retired(old: str, new: str) -> None:
    warnings.warn(f"profiler.{old} is deprecated: use profiler.{new}", stacklevel=3)
