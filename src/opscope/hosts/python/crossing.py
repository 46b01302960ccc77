"""`with` blocks that a `yield` crosses: the generator stands still, the block looks open."""

from __future__ import annotations

import dis
import inspect
from bisect import bisect_left, bisect_right
from functools import lru_cache
from types import CodeType, FrameType, TracebackType

_MAY_SUSPEND = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_YIELDS = frozenset(("YIELD_VALUE", "YIELD_FROM"))


def generator_of(frame: FrameType) -> FrameType | None:
    """The frame itself when it belongs to something that can be suspended."""
    return frame if frame.f_code.co_flags & _MAY_SUSPEND else None


def yields_between(frame: FrameType, began_at: int, trace: TracebackType | None) -> bool:
    """Whether the code from instruction `began_at` to where the frame is now can yield.

    With the traceback of an exception: to where that was raised.
    """
    places = _yields(frame.f_code)
    until = trace.tb_lasti if trace is not None and trace.tb_frame is frame else frame.f_lasti
    if until < began_at:
        return bool(places)
    return bisect_left(places, began_at) < bisect_right(places, until)


def line_at(code: CodeType, instruction: int) -> int:
    """The line of the code that the instruction at that offset belongs to."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


@lru_cache(maxsize=256)
def _yields(code: CodeType) -> list[int]:
    return [found.offset for found in dis.get_instructions(code) if found.opname in _YIELDS]
