"""The hot path: recorder, current call, tasks handed to other threads, waits that can be seen."""

from opscope.record.adopt import (
    InFlight,
    adopt,
    everywhere,
    on_stacks,
    put_suspended,
    settle,
)
from opscope.record.chosen import in_use, operators_in_c, recorder_class
from opscope.record.clock import Clock, SystemClock
from opscope.record.recorder import BOUND, Recorder, Row, Sink
from opscope.record.scope import Frame
from opscope.record.tasks import carry
from opscope.record.writer import FLUSH_S, Writer

__all__ = [
    "BOUND",
    "FLUSH_S",
    "Clock",
    "Frame",
    "InFlight",
    "Recorder",
    "Row",
    "Sink",
    "SystemClock",
    "Writer",
    "adopt",
    "carry",
    "everywhere",
    "in_use",
    "on_stacks",
    "operators_in_c",
    "put_suspended",
    "recorder_class",
    "settle",
]
