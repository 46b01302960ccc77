"""The one recording behind `mx.profiler`: on, off, paused, and what it has seen so far."""

from __future__ import annotations

import logging
import os
import threading
import warnings

from opscope import profiler as home
from opscope.compat.mxnet.profiler.config import Config
from opscope.compat.mxnet.profiler.marks import timeline
from opscope.errors import OpscopeError
from opscope.model import Session

log = logging.getLogger("opscope")


class Recording:
    """Made once. Stopping is a pause of the recording, so that running again goes on with it and
    operators under way still end in it. Any thread; switching never raises into the program.

    Where a recording of opscope's own runs already, that one is shown, and left to its owner.
    """

    def __init__(self) -> None:
        self.config = Config()
        self.running = False
        self.paused = False
        self._lock = threading.RLock()
        self._profile: home.profile | None = None
        self._borrowed = False
        self._on = False

    def switch(self, *, running: bool | None = None, paused: bool | None = None) -> None:
        """Change what is given, and go by the configuration as it is now."""
        with self._lock:
            self.running = self.running if running is None else running
            self.paused = self.paused if paused is None else paused
            active = self.running and not self.paused
            if not active:
                timeline.turn(False)
            self._record(active and self.config.operators)
            if active:
                timeline.turn(True)  # after the recording began: nothing is before its start

    def _record(self, on: bool) -> None:
        if on == self._on:
            return
        self._on = on
        try:
            if not on:
                if self._profile is not None and not self._borrowed:
                    self._profile.pause()
            elif self._profile is None or (self._borrowed and home._running is not self._profile):
                self._begin()
            elif not self._borrowed:
                self._profile.resume()
        except OpscopeError as error:
            log.error("opscope: mx.profiler could not be switched: %s", error)

    def _begin(self) -> None:
        self._borrowed = False
        other = home._running
        if other is None:
            self._profile = home.profile(host=("engine", "python")).start()
        else:
            self._profile, self._borrowed = other, True
            warnings.warn(
                "opscope records this process already: mx.profiler shows that recording",
                stacklevel=5,
            )

    def session(self) -> Session:
        """Everything recorded so far. Blocks while it is read."""
        profile = self._profile
        return Session() if profile is None else profile.session

    def end(self) -> None:
        """The process ends."""
        with self._lock:
            timeline.turn(False)
            if self._profile is not None and not self._borrowed:
                self._profile.stop()

    def forget(self) -> None:
        """In a forked child: the parent goes on with the recording."""
        config = self.config
        self.__init__()  # type: ignore[misc]
        self.config = config
        timeline.__init__()  # type: ignore[misc]


recording = Recording()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=recording.forget)
