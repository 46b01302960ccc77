"""Which call is current: a small frame in a ContextVar, for every thread and every asyncio task.

Leaving a call never resets a token. It unlinks the call's own frame, so nesting, recursion,
exceptions, interleaved generators and blocks closed in another context all come out right.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextvars import Context, ContextVar
from threading import get_ident
from types import FrameType
from typing import Any

from opscope.model import Flag, Kind, Phase
from opscope.record.extension import native
from opscope.record.recorder import Recorder


class Frame:
    """One open call (or a task running for one), as the thread that runs it knows it."""

    __slots__ = (
        "around",
        "aside",
        "call",
        "closed",
        "cpu",
        "lane",
        "left",
        "mark",
        "outer",
        "phase",
        "recorder",
        "task",
        "ticket",
        "yielding",
    )

    def __init__(self, recorder: Recorder, outer: Frame | None, call: int, phase: Phase) -> None:
        self.recorder = recorder
        self.outer = outer
        self.call = call  #: id of the owning call; 0: explicitly nobody
        self.task = 0  #: id of the task span, where this is a task
        self.phase = phase
        self.lane = -1
        self.cpu = 0  #: the thread's CPU time when the call had used none
        self.around: tuple[Frame, ...] = ()  #: known frames inside it when it was found running
        self.aside = 0  #: ident of the thread if it does something nobody owns, see `stand_aside`
        self.closed = False  #: over, and no copy of the context that still holds it may use it
        self.left = False  #: its end has begun: too late to take it into a new recording
        self.ticket = [None]  #: whoever pops it ends the span, see `claim`
        self.mark: tuple[int, int] | None = None  #: (ns, CPU ns) of a moment the host needs again
        self.yielding: FrameType | None = None  #: the generator a `with` block stands in

    @property
    def waiting(self) -> bool:
        """Whether a known wait of this thread is open: what it waits with inside is no other."""
        return (get_ident(), self) in _waiting


#: No chain is longer: Python calls do not nest that deep.
_LONGEST = 1_000_000

#: From CPython 3.12 on garbage is collected between two instructions only.
COLLECTS_ANYWHERE = sys.version_info < (3, 12)

_current: ContextVar[Frame | None] = ContextVar("opscope_call", default=None)
_waiting: set[tuple[int, Frame]] = set()
_setting: set[int] = set()
_collecting: list[Any] = [0, None]  # see `collecting`

#: Frames of calls that were found running, innermost last, by the ident of their thread, whose
#: context cannot be written from outside. Almost always empty, so looking is cheap.
adopted: dict[int, tuple[Frame, ...]] = {}

#: For calls that began unrecorded: the frame they were given later, by their wrapper's own frame.
late: dict[FrameType, Frame] = {}


def current(recorder: Recorder) -> Frame | None:
    """The innermost open frame of the calling thread or task in this recording."""
    return _open(_innermost(), recorder)


def owner(recorder: Recorder) -> int:
    """The id of the call that whatever happens now belongs to; 0: none."""
    frame = current(recorder)
    return frame.call if frame is not None else 0


def held() -> Frame | None:
    """What the calling thread or task holds as current, whichever recording it belongs to."""
    if keeps_beside():
        return _collecting[1]  # type: ignore[no-any-return]
    return _current.get()


def collecting(begins: bool) -> None:
    """The calling thread begins, or has ended, to collect garbage; for `COLLECTS_ANYWHERE` only.

    Until then what is current there is kept beside the ContextVar: the program may be in the middle
    of setting one of its own, and CPython does not survive a finalizer that sets another there.
    """
    if begins and not _collecting[0]:
        _collecting[1] = held()
        _collecting[0] = get_ident()
    elif not begins and keeps_beside():
        _collecting[0] = 0
        _collecting[1] = None


def keeps_beside() -> bool:
    """Whether the calling thread collects garbage now, see `collecting`."""
    return bool(_collecting[0]) and _collecting[0] == get_ident()


def stand_aside() -> Frame | None:
    """What this thread does from now on belongs to nobody; returns what `step_back` takes.

    Only marks what is current: the ContextVar must not be set where garbage is being collected,
    which before CPython 3.12 happens in the middle of setting one.
    """
    frame = held()
    if frame is None or frame.aside:
        return None
    frame.aside = get_ident()
    return frame


def step_back(frame: Frame) -> None:
    """The end of what `stand_aside` began."""
    frame.aside = 0


def held_in(context: Context) -> Frame | None:
    """The same for a context that is not the current one."""
    return context.get(_current)


def push(frame: Frame | None) -> None:
    """Make the frame current, or put back what `held` gave."""
    if not COLLECTS_ANYWHERE:
        _current.set(frame)
        return
    if keeps_beside():
        _collecting[1] = frame
        return
    # Garbage may be collected in the middle of setting, and CPython does not survive a finalizer
    # that sets the variable there: what such a one calls is recorded without being current.
    ident = get_ident()
    if ident not in _setting:
        _setting.add(ident)
        try:
            _current.set(frame)
        finally:
            _setting.discard(ident)


def link(inner: Frame | None = None) -> Frame | None:
    """The `outer` of a frame (`inner`, unless it is new) that is pushed now: nothing closed."""
    frame = _live(_innermost())
    if frame is not None and frame.left:
        # Who is over needs nobody around it who is: tasks may each start the next, for ever.
        while (outer := frame.outer) is not None and outer.left:
            frame.outer = outer.outer
    if inner is not None and within(frame, inner):
        return _live(inner.outer)
    if frame is not None and frame.yielding is not None:
        frame.outer = _live(frame.outer)  # else a chain could grow without end
    return frame


def pull(frame: Frame) -> None:
    """Unlink the frame wherever it stands; frames inside it that are still open stay."""
    top = held()
    if keeps_beside():
        frame.closed = True  # the ContextVar may hold it all the same
    if top is frame:
        push(frame.outer)
    else:
        for inner in _outwards(top):
            if inner.outer is frame:
                inner.outer = frame.outer
                break
    if adopted and release(frame):
        frame.closed = True  # contexts it was never pushed in may hold it by now


def release(frame: Frame) -> bool:
    """Take a call out of `adopted`; whether it was there."""
    for ident, found in list(adopted.items()):
        if frame in found:
            rest = tuple(other for other in found if other is not frame)
            for other in rest:
                if other.outer is frame:
                    other.outer = frame.outer
            if rest:
                adopted[ident] = rest
            else:
                adopted.pop(ident, None)
            return True
    return False


def enter(
    recorder: Recorder,
    name: int,
    phase: Phase = Phase.NONE,
    *,
    flags: int = 0,
    submitted_ns: int = 0,
    submitted_lane: int = -1,
    under: int = -1,
) -> Frame:
    """Begin a call of the operator whose name entry is `name` and make it current.

    Its owner is the current call, or `under` where the host knows better (0: none).
    """
    outer = held()
    if outer is None and not adopted:
        under = max(under, 0)
    elif (
        outer is not None
        and outer.recorder is recorder
        and not (adopted or outer.closed or recorder.closed or outer.aside)
        and outer.yielding is None
    ):
        if under < 0:
            under = outer.call
    else:  # the same in every other case
        outer = link()
        if under < 0:
            above = _open(outer, recorder)
            under = above.call if above is not None else 0
    frame = Frame(recorder, outer, 0, phase)
    frame.lane = recorder.here().lane
    frame.cpu = recorder.cpu()
    frame.call = recorder.begin(
        Kind.CALL,
        name,
        owner=under,
        phase=phase,
        flags=flags,
        lane=frame.lane,
        submitted_ns=submitted_ns,
        submitted_lane=submitted_lane,
    )
    push(frame)
    return frame


def leave(frame: Frame, flags: int = 0, cpu_ns: int | None = None, end_ns: int = 0) -> None:
    """End the call (now, or at `end_ns`) and unlink its frame, also when something raises here.

    CPU time is measured unless given, on the call's own lane only.
    """
    frame.left = True
    recorder = frame.recorder
    if recorder.closed or not claim(frame):
        pull(frame)
        return
    try:
        now = end_ns or recorder.now()
        if cpu_ns is None:
            here = recorder.here().lane == frame.lane
            cpu_ns = max(recorder.cpu() - frame.cpu, 0) if here and frame.cpu >= 0 else -1
    finally:
        pull(frame)
    recorder.end(frame.call, flags=flags, cpu_ns=cpu_ns, end_ns=now)


def claim(frame: Frame) -> bool:
    """Whether the caller is the one who ends the span of the frame: true once."""
    try:
        frame.ticket.pop()
    except IndexError:
        return False
    return True


def wait_begin(frame: Frame) -> int:
    """A known wait of the current call begins; returns its start for `wait_end`."""
    _waiting.add((get_ident(), frame))
    return frame.recorder.now()


def wait_end(frame: Frame, name: int, start_ns: int, flags: int = 0) -> None:
    """Record the wait that `wait_begin` opened on this thread."""
    wait_over(frame)
    recorder = frame.recorder
    end_ns = recorder.now()
    lane = recorder.here().lane
    recorder.put(
        (recorder.next_id(), frame.call, name, Kind.WAIT, frame.phase, flags, lane, lane,
         start_ns, end_ns, 0, -1)
    )  # fmt: skip


def wait_over(frame: Frame) -> None:
    """Forget the wait that `wait_begin` opened on this thread."""
    _waiting.discard((get_ident(), frame))


def _innermost() -> Frame | None:
    """What the context holds, or the adopted call of this thread where that one lies inside."""
    frame = held()
    if adopted:
        found = adopted.get(get_ident())
        if found is not None and not any(
            within(frame, inside) for inside in (found[-1], *found[-1].around)
        ):
            return found[-1]
    return frame


def within(frame: Frame | None, outer: Frame) -> bool:
    """Whether `outer` is the frame or stands around it."""
    return any(walk is outer for walk in _outwards(frame))


def _live(frame: Frame | None) -> Frame | None:
    if frame is None or not (frame.closed or frame.recorder.closed):
        return frame
    for walk in _outwards(frame):
        if not (walk.closed or walk.recorder.closed):
            return walk
    return None


def _open(frame: Frame | None, recorder: Recorder) -> Frame | None:
    if frame is None:
        return None
    if frame.recorder is recorder and not (frame.closed or frame.aside) and frame.yielding is None:
        return frame
    for walk in _outwards(frame):
        if walk.aside == get_ident():
            return None
        if walk.recorder is recorder and not walk.closed:
            if walk.yielding is None or _runs(walk.yielding):
                return walk
            row = recorder.opened.get(walk.call)
            if row is not None:
                row[5] |= Flag.CROSSED
    return None


def _outwards(frame: Frame | None) -> Iterator[Frame]:
    """The frame and those around it. Ends in any case: threads share frames, and a race between
    them must not hang the program."""
    for _ in range(_LONGEST):
        if frame is None:
            return
        yield frame
        frame = frame.outer
    if frame is not None:
        frame.outer = None


def _runs(generator: FrameType) -> bool:
    """Whether a generator is not suspended: only then it has a caller."""
    if not COLLECTS_ANYWHERE:
        return generator.f_back is not None
    # Looking may make a frame object of a caller on another thread, see `adopt`.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return generator.f_back is not None
    finally:
        if collecting:
            gc.enable()


if native is not None:
    # The same in C, which comes back to these for all that is rare.
    native.bind(
        _current, adopted, _waiting, Phase.NONE,
        enter=enter, leave=leave, find=current, link=link, open=_open, pull=pull,
    )  # fmt: skip
    globals().update(
        {
            name: getattr(native, name)
            for name in (
                "Frame",
                "enter",
                "leave",
                "current",
                "owner",
                "held",
                "push",
                "claim",
                "collecting",
                "keeps_beside",
            )
        }
    )
