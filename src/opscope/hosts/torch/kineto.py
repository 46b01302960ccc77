"""torch's own profiler: started, stopped, and its events as columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opscope.errors import HostError


class Kineto:
    """torch.autograd's profiler with all threads where it can, without anything that costs more.

    Not by `with profile()`: older versions build Python objects of all events when that is left.
    """

    def __init__(self) -> None:
        self._own: Any = sys.modules["torch.autograd.profiler"]
        self._torch: Any = sys.modules["torch"]
        options, self.all_threads = _options()
        devices = {str(found).rpartition(".")[2] for found in self._supported()}
        use = next((name.lower() for name in ("CUDA", "XPU") if name in devices), None)
        self.device = use
        made = {"use_kineto": True, "use_cpu": True, "experimental_config": options}
        if use is not None:
            made["use_device"] = use
        self._profile = self._own.profile(**made)

    def _supported(self) -> Any:
        try:
            return self._torch.profiler.supported_activities()
        except Exception:
            return ()

    @property
    def busy(self) -> bool:
        """Whether somebody's profiler is running now."""
        return bool(self._own._is_profiler_enabled)

    def start(self) -> None:
        """Begin to collect. Raises HostError where torch does not let us."""
        with _quiet():
            self._begin()

    def _begin(self) -> None:
        try:
            profile = self._profile
            self._own._prepare_profiler(_config(profile, True), profile.kineto_activities)
            self._own._run_on_profiler_start()
            self._own._enable_profiler(_config(profile, False), profile.kineto_activities)
        except Exception as error:
            raise HostError(f"torch's profiler does not start: {error}") from error

    def stop(self) -> list[Any]:
        """End collecting; returns torch's events."""
        if self.device is not None:
            module = getattr(self._torch, self.device)
            if module.is_initialized():
                module.synchronize()
        try:
            results = self._own._disable_profiler()
        finally:
            self._own._run_on_profiler_stop()
        events: list[Any] = results.events()
        return events

    @staticmethod
    def unfinished(events: list[Any]) -> set[int]:
        """The system's ids of threads on which operators were still running when these events were
        taken: nobody ended them."""
        if not events:
            return set()
        get = type(events[0])
        pairs = zip(map(get.end_thread_id, events), map(get.start_thread_id, events), strict=True)
        open_ = [place for place, (end, start) in enumerate(pairs) if end == 0 and start != 0]
        return {events[place].device_resource_id() for place in open_}


def _options() -> tuple[Any, bool]:
    """Options of the profiler, and whether they have it see threads that were there before."""
    make = sys.modules["torch._C._profiler"]._ExperimentalConfig
    try:
        return make(profile_all_threads=True), True
    except TypeError:
        return make(), False


def _config(profile: Any, new_id: bool) -> Any:
    try:
        return profile.config(create_trace_id=new_id)
    except TypeError:
        return profile.config()


@contextmanager
def _quiet() -> Iterator[None]:
    """Kineto reads once how much to print, and by default prints a line at every start and stop."""
    variable = "KINETO_LOG_LEVEL"
    if variable in os.environ:
        yield
        return
    os.environ[variable] = "99"
    try:
        yield
    finally:
        del os.environ[variable]
