"""The slices of an MXNet profile as spans with owners."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.totals import distinct
from opscope.importers.building import Builder
from opscope.importers.mxnet.calls import Calls, callers, own_by_time, raised, within
from opscope.importers.mxnet.copies import once
from opscope.importers.mxnet.events import Table
from opscope.importers.mxnet.lanes import lanes_of
from opscope.importers.mxnet.names import API, CUSTOM, ENGINE, Told, native, split, told, waits
from opscope.model import SPAN, Flag, Kind, Op, Phase, Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

COPIES = "second copies of operators, as tasks (left out)"
SINGLE = "operators without a second copy as a task (kept)"
NAMES_CUT = "names that MXNet cut after 127 bytes, which others may share (kept)"
PREFIXES = "operators whose prefix has several `::`, which is not who called them (no call's)"
ORPHANS = "sub-operators of operators that no call is seen of (no call's)"
SEVERAL = "sub-operators that several calls at a time may have made (given to one of them)"
RAISED = "calls that raised: neither when nor how long they ran is in the file (without length)"
BULKS = "operators that ran in bulk, as one (kept as one)"
UNNAMED = "calls whose operator is not named"

#: What the operator of a call without a name is called.
_UNNAMED = "Custom"


@dataclass(frozen=True, slots=True, eq=False)
class _Names:
    """What is told by the names, by number, and the number for each slice."""

    told: list[Told]
    of: Ints

    def which(self, question: str) -> Bools:
        """For which slices the answer of `Told` to that question is yes."""
        yes: Bools = _by(np.array([getattr(one, question) for one in self.told], bool), self.of)
        return yes


def rows_of(table: Table, builder: Builder) -> Rows:
    """The spans of all that the table holds; what is odd is counted in the builder's quality."""
    return _Rows(table, builder).done()


class _Rows:
    """The steps of `rows_of`. Indices are into `slices`, those of calls into `calls`."""

    def __init__(self, table: Table, builder: Builder) -> None:
        self.table, self.builder, self.quality = table, builder, builder.quality
        every = table.slices()
        texts, cats = table.names.all(), table.cats.all()
        engine = np.array([cat in ENGINE for cat in cats], bool)
        custom = cats.index(CUSTOM) if CUSTOM in cats else -1
        self.slices, alone, copies, single = once(every, _by(engine, every.cat), custom)
        slices = self.slices
        self.engine = _by(engine, slices.cat)
        self.api = _by(np.array([cat == API for cat in cats], bool), slices.cat)
        entries, of = distinct(slices.name, (slices.cat == custom) & self.engine)
        self.texts = [texts[name] for name, _ in entries.tolist()]
        self.names = _Names([told(texts[name], bool(c)) for name, c in entries.tolist()], of)
        self.ops = list(dict.fromkeys(one.op for one in self.names.told if one.op))
        number = {op: at for at, op in enumerate(self.ops)}
        self.op = _by(np.array([number.get(one.op, -1) for one in self.names.told], np.int64), of)
        named = self.engine & (self.op >= 0)
        cut = self.engine & self.names.which("cut")
        self.is_call = named & (self.names.which("is_python") | (cut & alone))
        self.is_last = named & self.names.which("is_last")
        self.is_chore = self.engine & self.names.which("is_chore") & ~self.is_last
        self.is_op = self.engine & ~self.is_call & ~self.is_last & ~self.is_chore
        self.is_whole = self.is_op & self.names.which("is_whole")
        self.quality.count(COPIES, copies)
        self.quality.count(SINGLE, single + int((alone & ~self.is_call).sum()))
        self.quality.count(NAMES_CUT, int(cut.sum()), self._shown(cut))
        bulk = self.is_op & self.names.which("is_bulk")
        self.quality.count(BULKS, int(bulk.sum()), self._shown(bulk))

    def done(self) -> Rows:
        """The rows: slices first, then the calls that left no slice."""
        called, subs = np.flatnonzero(self.is_call), np.flatnonzero(self.is_op & (self.op >= 0))
        calls = self._as_calls(called)
        lost = raised(calls, self._as_calls(np.flatnonzero(self.is_last)), self._as_calls(subs))
        calls = calls.and_also(lost)
        self.quality.count(RAISED, len(lost), [split(self.ops[op])[0] for op in lost.op.tolist()])
        whole = self.is_whole[subs]
        wholes, parts = subs[whole], subs[~whole]
        outer, unsure = callers(calls, self._as_calls(wholes))
        inner, sure = within(calls, self._as_calls(wholes))
        # What a call inside another made is done when the engine is done with that call.
        last = calls.end_ns.copy()
        known = inner >= 0
        last[inner[known]] = self.slices.end_ns[wholes[known]]
        found, several = callers(replace(calls, end_ns=last), self._as_calls(parts))
        many = _mask(self.op, np.concatenate((wholes[unsure], parts[several])))
        self.quality.count(SEVERAL, int(many.sum()), self._shown(many))
        caller = np.full(len(self.slices), -1, np.int64)
        caller[wholes], caller[parts] = outer, found
        left_out = self.is_last.copy()
        left_out[wholes[known]] = True

        rows = self._rows(lost)
        place = np.concatenate((called, len(self.slices) + np.arange(len(lost))))
        self._name_calls(rows, place, calls)
        owned = np.flatnonzero(caller >= 0)
        by = place[caller[owned]]
        rows["owner"][owned], rows["phase"][owned] = rows["id"][by], rows["phase"][by]
        wholes, call, outer, handed = wholes[known], inner[known], outer[known], sure[known]
        fits = (outer >= 0) & (calls.start_ns[outer] <= calls.start_ns[call]) & (outer != call)
        rows["owner"][place[call[fits]]] = rows["id"][place[outer[fits]]]
        rows["submitted_ns"][place[call[handed]]] = self.slices.start_ns[wholes[handed]]
        rows["submitted_lane"][place[call[handed]]] = rows["lane"][wholes[handed]]
        count = len(self.slices)
        made = self._more_calls(rows, self.is_op & ~left_out)
        kept = np.append(~left_out, np.ones(len(lost), bool))
        rows = rows.compress(kept)
        own_by_time(rows)
        which = np.flatnonzero(kept)
        rest = np.flatnonzero((which < count) & ~_mask(which, np.searchsorted(which, place)))
        rest = rest[~made[which[rest]]]
        self._name_rest(rows, rest, which[rest])
        rows["flags"] |= np.where(rows["owner"] != 0, int(Flag.INFERRED), 0).astype(np.int16)
        return rows

    def _as_calls(self, which: Ints) -> Calls:
        slices = self.slices
        return Calls(
            self.op[which], slices.thread[which], slices.start_ns[which], slices.end_ns[which]
        )

    def _rows(self, lost: Calls) -> Rows:
        """A row for each slice and each of the calls that left none, without owners and names."""
        slices, count = self.slices, len(self.slices)
        rows = np.zeros(count + len(lost), SPAN)
        rows["id"] = self.builder.ids(len(rows))
        rows["cpu_ns"] = -1
        mine = rows[:count]
        mine["kind"] = np.where(self.is_call, Kind.CALL, np.where(self.is_op, Kind.OP, Kind.RANGE))
        mine["kind"][self.is_chore | self.api] = Kind.RUNTIME
        waiting = _by(np.array([waits(one.name) for one in self.names.told], bool), self.names.of)
        mine["kind"][self.api & waiting] = Kind.WAIT
        mine["start_ns"], mine["end_ns"] = slices.start_ns, slices.end_ns
        mine["flags"] = np.where(slices.incomplete, Flag.INCOMPLETE, 0)
        mine["lane"] = lanes_of(slices, self.engine, self.api, self.table, self.builder)
        if len(lost):
            gone = rows[count:]
            gone["kind"], gone["flags"] = Kind.CALL, Flag.FAILED | Flag.INCOMPLETE
            gone["start_ns"], gone["end_ns"] = lost.start_ns, lost.end_ns
            gone["lane"] = self.builder.lane("unknown", "threads that are not known")
        rows["submitted_lane"] = rows["lane"]
        return rows

    def _name_calls(self, rows: Rows, place: Ints, calls: Calls) -> None:
        """Give calls their operator and direction."""
        entry = np.zeros(len(self.ops), np.int64)
        back = np.zeros(len(self.ops), bool)
        for op in np.unique(calls.op).tolist():
            name, back[op] = split(self.ops[op])
            entry[op] = self._operator(name)
        rows["name"][place] = _by(entry, calls.op)
        rows["phase"][place] = np.where(_by(back, calls.op), Phase.BACKWARD, Phase.FORWARD)

    def _operator(self, name: str, kind: str = "CustomOp") -> int:
        is_native = native(name) or kind != "CustomOp"
        return self.builder.op(Op(self.builder.format, kind, name, native=is_native))

    def _more_calls(self, rows: Rows, able: Bools) -> Bools:
        """Make calls of what is one by the user's will, or of an operator that is not named.

        Returns which; only `able` ones.
        """
        options, of = self.builder.options, self.names.of
        made = np.zeros(len(self.slices), bool)
        for number, (one, text) in enumerate(zip(self.names.told, self.texts, strict=True)):
            chosen = options.chosen(one.name) or options.chosen(text)
            if not (chosen or one.is_whole):
                continue
            which = np.flatnonzero(able & (of == number))
            if not len(which):
                continue
            made[which] = True
            back = not chosen and split(one.name)[1]
            rows["kind"][which] = Kind.CALL
            rows["phase"][which] = Phase.BACKWARD if back else Phase.FORWARD
            rows["name"][which] = self._operator(
                one.name if chosen else _UNNAMED, "operator" if chosen else "CustomOp"
            )
            if not chosen:
                self.quality.count(UNNAMED, len(which), [text])
        return made

    def _name_rest(self, rows: Rows, rest: Ints, mine: Ints) -> None:
        """Names of `rows[rest]`, of the slices `mine`: without the prefix where an owner has it."""
        alone = self.is_op[mine] & (self.op[mine] >= 0) & (rows["owner"][rest] == 0)
        entries, of = distinct(self.names.of[mine], alone)
        entry = []
        for number, is_alone in entries.tolist():
            one = self.names.told[number]
            entry.append(self.builder.name(self.texts[number] if is_alone else one.name))
            if is_alone and "::" not in one.op:
                self._operator(split(one.op)[0])  # an operator without a call
        rows["name"][rest] = _by(np.array(entry, np.int64), of)
        several = np.array(["::" in one.op for one in self.names.told], bool)
        wrong = _mask(self.op, mine[alone]) & _by(several, self.names.of)
        orphan = _mask(self.op, mine[alone]) & ~wrong
        self.quality.count(PREFIXES, int(wrong.sum()), self._shown(wrong))
        self.quality.count(ORPHANS, int(orphan.sum()), self._shown(orphan))

    def _shown(self, which: Bools) -> list[str]:
        """The names of the first few of those slices, each once."""
        first = self.names.of[np.flatnonzero(which)[:500]].tolist()
        return [self.texts[number] for number in dict.fromkeys(first)]


def _by(column: NDArray[Any], of: Ints) -> NDArray[Any]:
    """`column[of]`, also where both are empty."""
    return column[of] if len(of) else np.zeros(0, column.dtype)


def _mask(like: NDArray[Any], which: Ints) -> Bools:
    mask = np.zeros(len(like), bool)
    mask[which] = True
    return mask
