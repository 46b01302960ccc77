"""What `set_config` was told."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

from opscope.compat.mxnet.base import MXNetError


@dataclass(slots=True)
class Config:
    """`operators`: whether those of nd are recorded. `continuous`: whether the file is written
    again every `period_s` seconds while the profiler runs, which in MXNet is so unless told."""

    filename: str = "profile.json"
    operators: bool = True
    continuous: bool = False
    period_s: float = 1.0

    def take(self, told: dict[str, Any]) -> None:
        """Check everything, then change what was named. MXNetError for what MXNet does not know."""
        known = (*_SWITCHES, *_IDLE, "filename", "dump_period")
        for key in told:
            if key not in known:
                raise MXNetError(f"set_config does not know {key!r}; it knows {', '.join(known)}")
        switches = {key: _switch(key, told[key]) for key in told if key in _SWITCHES}
        period = _seconds(told.get("dump_period", self.period_s))
        for key in told.keys() & _IDLE:
            if key not in _warned:
                _warned.add(key)
                warnings.warn(f"set_config({key}=...) has no effect here", stacklevel=3)
        if "filename" in told:
            self.filename = os.fspath(told["filename"])
        if "profile_imperative" in switches or "profile_all" in switches:
            self.operators = switches.get("profile_all", False) or switches.get(
                "profile_imperative", True
            )
        self.continuous = switches.get("continuous_dump", self.continuous)
        self.period_s = period


#: Of these, the last four are taken and change nothing: the table is always kept, and there are
#: neither graphs nor a C interface nor device memory to record.
_SWITCHES = (
    *("profile_all", "profile_imperative", "continuous_dump"),
    *("aggregate_stats", "profile_symbolic", "profile_api", "profile_memory"),
)
_IDLE = {"profile_process", "aggregate_stats_filename", "gpu_memory_profile_filename_prefix"}
_warned: set[str] = set()


def _switch(key: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0"):
        raise MXNetError(f"set_config({key}=...) is True or False, not {value!r}")
    return text in ("true", "1")


def _seconds(value: Any) -> float:
    try:
        period = float(value)
    except (TypeError, ValueError):
        period = 0.0
    if not 0 < period < float("inf"):
        raise MXNetError(f"dump_period is a number of seconds above 0, not {value!r}")
    return period
