"""Other users of torch's profiler, of which only one can run in a process: they go first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from opscope.hosts.torch.times import Anchor, anchor
from opscope.hosts.torch.windows import Windows
from opscope.record.patch import patched


class Rivals:
    """Lets go of torch's profiler while the program uses it, and takes its events then."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._since: Anchor | None = None

    @contextmanager
    def yielded_to(self) -> Iterator[None]:
        """Inside the block the program's own profiles work as if nobody else were there."""
        profile = sys.modules["torch.autograd.profiler"].profile
        if self.windows.kineto.busy:
            self._since = anchor(self.windows.recorder.clock)
        with ExitStack() as stack:
            stack.enter_context(patched(profile, "_prepare_trace", self._prepare))
            stack.enter_context(patched(profile, "_start_trace", self._start))
            stack.enter_context(patched(profile, "__exit__", self._exit))
            yield

    def _prepare(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def prepare(profile: Any, *args: Any, **kwargs: Any) -> Any:
            self._guarded(self.windows.hold)
            return original(profile, *args, **kwargs)

        return prepare

    def _start(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start(profile: Any, *args: Any, **kwargs: Any) -> Any:
            self._guarded(self.windows.hold)
            result = original(profile, *args, **kwargs)
            self._since = anchor(self.windows.recorder.clock)
            return result

        return start

    def _exit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def leave(profile: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(profile, *args, **kwargs)
            if not self.windows.kineto.busy:
                since, self._since = self._since, None
                self._guarded(lambda: self.windows.release(_events(profile), since))
            return result

        return leave

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self.windows.recorder.fault("torch profiler", error)


def _events(profile: Any) -> list[Any]:
    results = getattr(profile, "kineto_results", None)
    return list(results.events()) if results is not None else []
