"""Random runs, nested properly, and a slow and obvious account of who owned what in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st
from tests.attribution.late.world import Line, call, event, row

from opscope.attribution.late import Role
from opscope.model import Flag, Kind, Phase

LANES = 3
STREAM = 9
_EVENTS = {
    **dict.fromkeys(("ns::U", "ns::V", "aten::mul", "aten::add"), Role.OP),
    **dict.fromkeys(("UBackward", "VBackward", "SinBackward0", "CheckpointBackward"), Role.NODE),
    **{"engine": Role.ENGINE, "range": Role.RANGE, "step": Role.STEP, "launch": Role.API},
}
#: Operators without hooks, by the names of their events.
_CALLS = {"ns::U": "U", "ns::V": "V", "UBackward": "U", "VBackward": "V"}
#: Calls that a recorder took; the framework saw those of the last two as well.
_RECORDED = ("call", "recompute", "hooked", "function")
_ROWS = (*_RECORDED, "task", "lock", "gc", "asleep")
#: Nanoseconds between moments, and between a bracket and the framework's event of the same call.
_STEP, _EDGE = 10_000, 2_000


@dataclass(eq=False)
class Thing:
    """Something that took time on a lane, inside `up`."""

    number: int
    what: str
    lane: int
    start: int
    up: Thing | None
    end: int = 0
    submitted: tuple[int, int] = (0, 0)  # of a task: lane and time
    submitter: Thing | None = None  # the innermost thing around that

    @property
    def text(self) -> str:
        return f"{self.what} {self.number}"

    @property
    def is_call(self) -> bool:
        return self.what in _RECORDED or (self.what in _CALLS and not self.again)

    def around(self) -> Thing | None:
        """What is around it: waits and chores are around nothing, nor are suspended calls."""
        return running(self.up)

    @property
    def again(self) -> bool:
        """Whether it is an operator entered again on the way to its function."""
        up = self.around()
        return self.what.startswith("ns::") and up is not None and up.what == self.what

    def owner(self) -> Thing | None:
        """The call that owns it."""
        if self.what in ("gc", "step"):
            return None
        if self.what == "asleep":
            return self.up
        return holder(running(self.submitter) if self.what == "task" else self.around())

    def phase(self) -> Phase:
        """Its phase, if it is one that follows from where it is."""
        if self.what in _RECORDED:
            return Phase.RECOMPUTE if self.what == "recompute" else Phase.FORWARD
        if self.is_call and self.what.startswith("ns::"):
            return Phase.RECOMPUTE if self._computes_again() else Phase.FORWARD
        if _EVENTS.get(self.what) in (Role.NODE, Role.ENGINE):
            return Phase.BACKWARD
        thing = running(self.submitter) if self.what == "task" else self.around()
        if self.what == "asleep":
            thing = self.up
        while thing is not None:
            engine = _EVENTS.get(thing.what) in (Role.NODE, Role.ENGINE)
            if thing.is_call or thing.what == "task" or (engine and self.what in _EVENTS):
                return thing.phase()
            thing = thing.around()
        return Phase.NONE

    def _computes_again(self) -> bool:
        thing = self.around()
        while thing is not None:
            told = thing.what == "task" and live(thing)[1] == Phase.RECOMPUTE
            if told or thing.what in ("recompute", "CheckpointBackward"):
                return True
            thing = thing.around()
        return False


def running(thing: Thing | None) -> Thing | None:
    """`thing`, or the nearest around it that something can be inside of."""
    while thing is not None and thing.what in ("lock", "gc", "asleep"):
        # What an "asleep" lies in is the suspended call.
        thing = thing.up.up if thing.what == "asleep" and thing.up else thing.up
    return thing


def holder(thing: Thing | None) -> Thing | None:
    """The call that owns what is directly inside `thing`."""
    while thing is not None and not thing.is_call:
        if thing.what == "task":
            return thing.owner()
        thing = thing.around()
    return thing


def live(thing: Thing) -> tuple[int, Phase]:
    """Owner and phase as a recorder has them, who knows recorded calls only."""
    if thing.what == "gc":
        return 0, Phase.NONE
    up = running(thing.submitter) if thing.what == "task" else thing.around()
    if thing.what == "asleep":
        up = thing.up
    while up is not None and up.what not in _RECORDED:
        if up.what == "task":
            return live(up)
        up = up.around()
    return (up.number, up.phase()) if up is not None else (0, Phase.NONE)


@dataclass
class Forest:
    """All things of a run, each lane's by start. Numbers are the ids of recorded rows."""

    things: list[Thing] = field(default_factory=list)

    def events(self) -> list[Line]:
        """What the framework's profiler saw; each runtime call launched a kernel."""
        found = []
        for thing in self.things:
            if thing.what in _EVENTS:
                times, more = (thing.start, thing.end), {"lane": thing.lane}
                if thing.what == "launch":
                    more["correlation"] = thing.number
                    late = (2 * thing.start, 3 * thing.start, Role.DEVICE)
                    kernel = {"lane": STREAM, "correlation": thing.number}
                    found.append(event(f"kernel {thing.number}", *late, **kernel))
                # Names tell operators, so what has another meaning gets a name of its own.
                known = thing.what in _CALLS or thing.what == "CheckpointBackward"
                name = thing.what if known else thing.text
                found.append(event(name, *times, _EVENTS[thing.what], **more))
            elif thing.what == "hooked":
                found.append(event("ns::A", thing.start, thing.end, lane=thing.lane))
            elif thing.what == "function":
                inside = (thing.start + _EDGE, thing.end - _EDGE)
                found.append(event("F", *inside, lane=thing.lane))
        return found

    def rows(self) -> list[tuple[int, ...]]:
        """What the recorder took."""
        kinds = {"task": Kind.TASK, "lock": Kind.WAIT, "gc": Kind.RUNTIME, "asleep": Kind.WAIT}
        found = []
        for thing in self.things:
            owner, phase = live(thing)
            place = (thing.start, thing.end)
            more = {"owner": owner, "lane": thing.lane}
            if thing.what in _RECORDED:
                name = {"hooked": "A", "function": "F"}.get(thing.what, thing.text)
                if thing.what == "hooked":
                    place = (thing.start + _EDGE, thing.end - _EDGE)
                found.append(call(thing.number, name, *place, phase=thing.phase(), **more))
            elif thing.what in kinds:
                if thing.what == "task":
                    more["submitted_lane"], more["submitted_ns"] = thing.submitted
                flags = Flag.SUSPENDED if thing.what == "asleep" else 0
                kind = kinds[thing.what]
                told = {"phase": phase, "flags": flags, **more}
                found.append(row(thing.number, thing.text, kind, *place, **told))
        return found


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Things of several lanes at a common clock; no two moments are the same."""
    forest = Forest()
    open_: list[list[Thing]] = [[] for _ in range(LANES)]
    steps = st.tuples(
        st.integers(0, LANES - 1), st.sampled_from(["end", *_EVENTS, *_ROWS]), st.randoms()
    )
    moments: list[tuple[int, int, Thing | None]] = [(0, 1, None)]
    clock = _STEP
    for lane, what, random in draw(st.lists(steps, max_size=30)):
        stack = open_[lane]
        top = stack[-1] if stack else None
        # Between two moments something may be submitted.
        moments.append((lane, clock + _STEP // 2, top))
        clock += _STEP
        if what == "end":
            if top is not None:
                stack.pop().end = clock
        elif what != "asleep" or (top is not None and top.what in _RECORDED):
            thing = Thing(len(forest.things) + 1, what, lane, clock, top)
            if what == "task":
                where, when, thing.submitter = random.choice(moments)
                thing.submitted = where, when
            forest.things.append(thing)
            stack.append(thing)
    for stack in open_:
        for thing in reversed(stack):
            clock += _STEP
            thing.end = clock
    return forest
