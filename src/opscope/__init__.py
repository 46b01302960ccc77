"""opscope shows what happens inside custom operators.

    with opscope.profile() as profile:
        train()
    print(profile)

Where things are:

    profiler.py    profile(): the one object a user meets
    sessions.py    load, summary, export, explain: sessions from files and to files
    errors.py      the tree of errors, with exit codes
    testing.py     ManualClock, FakeHost, assert_restored: for our tests and our users'
    model/         the words (span, call, lane, session ...) as plain data
    record/        the hot path: recorder, current call, tasks handed to other threads, waits
    store/         the session file: write, read, recover, merge
    attribution/   pure: who nests in whom, who owns what, what a call's time was
    importers/     other people's traces into sessions: kineto, mxnet, chrome, xplane ...
    analyse/       one question, one file, one frozen answer
    present/       answers and sessions to text and files
    hosts/         the only folder that may import a framework
    engine/        an asynchronous dependency engine on NumPy; not aware of profiling
    compat/mxnet/  the engine behind MXNet's names, profiler calls included
    cli/           one command, one small file
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opscope._version import __version__
from opscope.errors import HostError, InputError, OpscopeError, UsageError

if TYPE_CHECKING:
    from opscope.analyse.compare import compare
    from opscope.hosts.python import custom_op
    from opscope.model import Session
    from opscope.present.frames import to_pandas, to_polars
    from opscope.profiler import profile
    from opscope.record import carry
    from opscope.record.schedule import schedule
    from opscope.sessions import explain, export, load, summary

__all__ = [
    "HostError",
    "InputError",
    "OpscopeError",
    "Session",
    "UsageError",
    "__version__",
    "carry",
    "compare",
    "custom_op",
    "explain",
    "export",
    "load",
    "profile",
    "schedule",
    "summary",
    "to_pandas",
    "to_polars",
]

#: Where the names live that are imported when first used, so that `import opscope` is quick.
_LAZY = {
    "Session": "opscope.model",
    "carry": "opscope.record",
    "compare": "opscope.analyse.compare",
    "custom_op": "opscope.hosts.python",
    "explain": "opscope.sessions",
    "export": "opscope.sessions",
    "load": "opscope.sessions",
    "profile": "opscope.profiler",
    "schedule": "opscope.record.schedule",
    "summary": "opscope.sessions",
    "to_pandas": "opscope.present.frames",
    "to_polars": "opscope.present.frames",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'opscope' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _enable() -> None:
    import os

    if os.environ.get("OPSCOPE_ENABLE", "").lower() not in ("", "0", "false", "no", "off"):
        from opscope.profiler import record_process

        record_process()


_enable()
