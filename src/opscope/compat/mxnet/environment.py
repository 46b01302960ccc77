"""MXNet's environment variables that mean something here, obeyed once, at import."""

from __future__ import annotations

import os

from opscope import engine
from opscope.compat.mxnet import profiler
from opscope.compat.mxnet.base import MXNetError

_KINDS = {
    "NaiveEngine": "naive",
    "ThreadedEngine": "threaded",
    "ThreadedEnginePerDevice": "threaded",
}


def obey() -> None:
    """Choose the engine and start the profiler as the environment says. MXNetError for nonsense."""
    kind = os.environ.get("MXNET_ENGINE_TYPE")
    workers = os.environ.get("MXNET_CPU_WORKER_NTHREADS")
    if kind or workers:  # else the engine in use, if any, stays
        engine.use(_kind(kind or "ThreadedEnginePerDevice"), workers=_number(workers))
    if os.environ.get("MXNET_PROFILER_AUTOSTART", "0") not in ("", "0"):
        profiler.set_state("run")


def _kind(name: str) -> str:
    if name not in _KINDS:
        raise MXNetError(f"MXNET_ENGINE_TYPE is one of {', '.join(_KINDS)}, not {name!r}")
    return _KINDS[name]


def _number(text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise MXNetError(f"MXNET_CPU_WORKER_NTHREADS is a number of threads, not {text!r}")
    return int(text)
