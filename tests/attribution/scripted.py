"""A made-up run whose truth is known, because it is acted out while it is written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from tests.builders import Line, span

from opscope.model import Flag, Kind

#: What a call does: (what, how long), or ("call", [what it does]).
Act = tuple[str, Any]

_TIMES = st.integers(0, 20)
_PLAIN = st.sampled_from(["python", "idle", "wait", "op", "runtime", "asleep", "gap op", "pause"])
_ACTS = st.recursive(
    st.lists(st.tuples(_PLAIN, _TIMES), max_size=6),
    lambda inner: st.lists(
        st.one_of(st.tuples(_PLAIN, _TIMES), st.tuples(st.just("call"), inner)), max_size=5
    ),
    max_leaves=12,
)


def scripts() -> st.SearchStrategy[list[Act]]:
    """Strategies for what the outermost call does."""
    return _ACTS


@dataclass
class Run:
    """Acts scripts out on one lane. `truth[id]` counts the nanoseconds of each part of a call."""

    lines: list[Line] = field(default_factory=list)
    truth: dict[int, Counter[str]] = field(default_factory=dict)
    pauses: list[tuple[int, int, int]] = field(default_factory=list)
    now: int = 1000
    cpu: int = 0
    next_id: int = 1

    def call(self, acts: list[Act], owner: int = 0, name: str = "A") -> int:
        """Run one call; returns its id."""
        me, self.next_id = self.next_id, self.next_id + 1
        start, cpu = self.now, self.cpu
        truth = self.truth[me] = Counter()
        self._spend("dispatch", 3, me, busy=True)
        truth["dispatch"] += 3
        for what, how in acts:
            if what == "call":
                began, paused = self.now, self._paused()
                inner = self.truth[self.call(how, me, "B")]
                truth["sub"] += self.now - began - (self._paused() - paused) - inner["asleep"]
                # While what it called sleeps the time is its own again, and here it only waits.
                truth["wait"] += inner["asleep"]
            else:
                self._act(what, how, me)
        truth["wall"] = self.now - start - sum(e - s for _, s, e in self.pauses if s >= start)
        self.lines.append(
            span(me, name, Kind.CALL, start, self.now, owner=owner, cpu_ns=self.cpu - cpu)
        )
        return me

    def _paused(self) -> int:
        return sum(end - start for _, start, end in self.pauses)

    def _act(self, what: str, how: int, me: int) -> None:
        truth = self.truth[me]
        if what == "pause":
            # CPU time stands still while nothing is recorded.
            self.pauses.append((0, self.now, self.now + how))
            self.now += how
        elif what == "python":
            self.now += how
            self.cpu += how
            truth["python"] += how
        elif what == "idle":
            self.now += how
            truth["wait"] += how
        elif what == "gap op":
            self._spend("op", how, me, busy=True, cpu_known=False)
            truth["sub"] += how
        else:
            self._spend(what, how, me, busy=what in ("op", "runtime"))
            truth[{"op": "sub", "asleep": "wait"}.get(what, what)] += how
            truth["asleep"] += how if what == "asleep" else 0

    def _spend(self, what: str, how: int, me: int, *, busy: bool, cpu_known: bool = True) -> None:
        kinds = {"op": Kind.OP, "runtime": Kind.RUNTIME, "dispatch": Kind.DISPATCH}
        kind = kinds.get(what, Kind.WAIT)
        self.lines.append(
            span(
                self.next_id,
                what,
                kind,
                self.now,
                self.now + how,
                owner=0 if kind == Kind.RUNTIME else me,
                flags=Flag.SUSPENDED if what == "asleep" else 0,
                cpu_ns=how if busy and cpu_known else -1,
            )
        )
        self.next_id += 1
        self.now += how
        self.cpu += how if busy else 0
