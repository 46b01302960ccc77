"""The seam: what a host is. One file or small folder behind it for each framework."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from opscope.model import Sight
from opscope.record import Recorder

__all__ = ["Host", "Recorder", "Sight"]


@runtime_checkable
class Host(Protocol):
    """The adapter to one framework.

    A third party offers one by the entry point group `opscope.hosts`: a class without arguments, or
    a function that makes one.
    """

    #: How `--host` and the report name it.
    name: str
    #: Attach when this module is imported; None: at once.
    module: str | None

    def probe(self) -> Sight:
        """What can be seen here and now, and what cannot and why.

        Imports no framework, starts nothing, never raises. What it does not list under `sees`
        never appears in a recording.
        """

    def attach(self, recorder: Recorder) -> AbstractContextManager[None]:
        """Hook into the framework; it is imported by then. May run on any thread.

        On exit, also after an exception, the framework is as it was and every span is delivered.
        A fault inside a hook goes to `recorder.fault` and never into the user's program.
        """
