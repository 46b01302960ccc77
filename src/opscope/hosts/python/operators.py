"""Which plain Python operators exist: one `Marked` for each thing that was marked."""

from __future__ import annotations

import inspect
import threading
import weakref
from functools import partial
from types import CodeType
from typing import Any

from opscope.errors import UsageError
from opscope.model import Op
from opscope.record import Recorder, scope
from opscope.record.scope import Frame

HOST = "python"

_lock = threading.RLock()  # a finalizer or a signal handler may enter a block while we are here
_known: dict[str, dict[Any, Marked]] = {}


class Marked:
    """A custom operator of plain Python, and the entry of the names it has in the recording."""

    __slots__ = ("_at", "op")

    def __init__(self, op: Op) -> None:
        self.op = op
        #: Both at once, as other threads look, and weakly: a recording that is over can go.
        self._at: tuple[weakref.ref[Recorder] | None, int] = (None, -1)

    def name_in(self, recorder: Recorder) -> int:
        """The operator's entry of the names of that recording."""
        seen, entry = self._at
        if seen is None or seen() is not recorder:
            entry = recorder.op(self.op)
            self._at = weakref.ref(recorder), entry
        return entry

    def begin(self, recorder: Recorder, flags: int = 0) -> Frame | None:
        """Begin a call; None when that failed and the function should just be run."""
        try:
            return scope.enter(recorder, self.name_in(recorder), flags=flags)
        except Exception as error:
            recorder.fault(HOST, error)
            return None


def end(frame: Frame, flags: int = 0, cpu_ns: int | None = None) -> None:
    """End the call of that frame. Never raises."""
    try:
        scope.leave(frame, flags, cpu_ns)
    except Exception as error:
        frame.recorder.fault(HOST, error)


def operator(
    name: str, qualified: str, kind: str, *, file: str = "", line: int = 0, place: Any = None
) -> Marked:
    """The operator of that qualified name marked at that place; made when it is new.

    `place` is what tells two operators of one qualified name apart: the second gets registration
    number 2.
    """
    with _lock:
        places = _known.setdefault(qualified, {})
        if place not in places:
            number = len(places) + 1
            places[place] = Marked(Op(HOST, kind, name, qualified, "", number, file, line))
        return places[place]


def known_block(name: str) -> Marked | None:
    """The operator of the blocks of that name, once one of them was entered. Takes no lock."""
    places = _known.get(name)
    return places.get(None) if places is not None else None


def operator_of(target: Any, name: str | None) -> Marked:
    """The operator that a function becomes when it is marked.

    Its identity is its code, so closures made in a loop, partials of one function and instances of
    one callable class are one operator, and two functions of one name are two.
    """
    while isinstance(target, partial):
        target = target.func
    own = getattr(target, "__qualname__", type(target).__qualname__)
    module = getattr(target, "__module__", None) or type(target).__module__
    code = _code_of(inspect.unwrap(target))
    # A function inside a function is shown without the way to it; its identity keeps it.
    shown = own.rpartition("<locals>.")[2]
    return operator(
        shown if name is None else name,
        f"{module}.{own}" if name is None else name,
        "function",
        file=code.co_filename if code is not None else "",
        line=code.co_firstlineno if code is not None else 0,
        # Code objects of different files can be equal.
        place=(module, own) if code is None else (code, code.co_filename),
    )


def _code_of(function: Any) -> CodeType | None:
    for place in (function, type(function).__call__):
        code = getattr(place, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def checked_name(name: object) -> str:
    """The name, if it is one. Raises UsageError otherwise."""
    if not isinstance(name, str):
        raise UsageError(f"custom_op takes a function or a name, not {type(name).__name__}")
    if not name:
        raise UsageError(
            "custom_op needs a name that is not empty, or none to use the function's own"
        )
    return name
