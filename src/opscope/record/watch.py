"""Who is recording now. Marked functions and patches look here once and go on when it is nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opscope.record.recorder import Recorder

#: The recorder that takes new calls; None while nothing is recorded or recording is paused.
recorder: Recorder | None = None
