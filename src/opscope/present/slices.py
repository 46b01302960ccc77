"""The slices of a trace: one for each span, and those that show a call's own time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from opscope.analyse import Own, own_time
from opscope.analyse.basis import basis
from opscope.analyse.rows import KIND_WORDS, PHASE_WORDS
from opscope.analyse.spans import CUSTOM, all_flags, domain, span_path
from opscope.model import Kind, Session, flag_names
from opscope.present.threads import Threads, microseconds

#: Kinds of span that are shown by what they were, not by their own name, when a call owns them.
_ROLES = {Kind.WAIT: "wait", Kind.DISPATCH: "dispatch"}

_text = lru_cache(maxsize=65536)(json.dumps)


class Slices:
    """Makes the events of a session; each is the text of a JSON object."""

    def __init__(self, session: Session, where: Threads) -> None:
        self._session = session
        self._where = where
        self._base = basis(session)

    def events(self) -> Iterator[str]:
        """All slices, thread by thread, in order of time, outer ones first."""
        spans, where = self._session.spans, self._where
        own = own_time(self._session)
        count = len(spans)
        thread = np.concatenate((where.of_span, where.of_span[own.box]))
        start = np.concatenate((spans["start_ns"], own.start_ns))
        end = np.concatenate((np.maximum(spans["end_ns"], spans["start_ns"]), own.end_ns))
        depth = self._base.attribution.nesting.depth
        deepest = np.full(len(own.call), max(depth.tolist(), default=0) + 1)
        order = np.lexsort((np.concatenate((depth, deepest)), -end, start, thread))
        span_args = self._span_args()
        own_args = list(zip(*(column.tolist() for column in (
            own.call, own.sort, own.python_ns, own.wait_ns)), strict=True))  # fmt: skip
        zero = self._session.start_ns
        for item, index, begin, length in zip(
            order.tolist(),
            thread[order].tolist(),
            (start[order] - zero).tolist(),
            (end - start)[order].tolist(),
            strict=True,
        ):
            body = span_args[item] if item < count else self._own(*own_args[item - count])
            place = where.every[index]
            yield (
                f'{{"ph": "X", "pid": {place.pid}, "tid": {place.tid}, '
                f'"ts": {microseconds(begin)}, "dur": {microseconds(length)}, {body}}}'
            )

    def _span_args(self) -> list[str]:
        """Name, category and arguments of each span, by row."""
        spans, base = self._session.spans, self._base
        return [
            self._span(*values)
            for values in zip(
                *(spans[key].tolist() for key in ("id", "owner", "name", "kind", "phase")),
                base.path.tolist(),
                all_flags(base),
                strict=True,
            )
        ]

    def _span(
        self, ident: int, owner: int, name: int, kind: int, phase: int, path: int, flags: int
    ) -> str:
        tail = f', "flags": {json.dumps(flag_names(flags))}' if flags else ""
        return (
            f'{self._head(name, kind, path)}, "args": {{"id": {ident}, "owner": {owner or "null"}, '
            f'"kind": "{KIND_WORDS[kind]}", "phase": "{PHASE_WORDS[phase]}", '
            f"{self._operator(path)}{tail}}}"
        )

    def _head(self, name: int, kind: int, path: int) -> str:
        text = self._session.names[name]
        if path >= 0:
            text = _ROLES.get(Kind(kind), text)
        shown = "::".join(span_path(self._base, kind, path, text))
        return f'"name": {_text(shown)}, "cat": "{domain(kind, path)}"'

    def _operator(self, path: int) -> str:
        if path < 0:
            return '"op": null, "key": null'
        return f'"op": {_text(self._base.op[path])}, "key": {_text(self._base.key[path])}'

    def _own(self, call: int, sort: int, python_ns: int, wait_ns: int) -> str:
        """Own time. Where it was Python and waiting together, their amounts in the whole call."""
        spans, path = self._session.spans, int(self._base.path[call])
        word = Own(sort).name.lower()
        name = "::".join((*self._base.shown[path], word))
        ident, phase = int(spans["id"][call]), PHASE_WORDS[int(spans["phase"][call])]
        amounts = f', "python_ns": {python_ns}, "wait_ns": {wait_ns}' if sort == Own.OWN else ""
        return (
            f'"name": {_text(name)}, "cat": "{CUSTOM}", "args": {{"call": {ident}, '
            f'"owner": {ident}, "kind": "own", "phase": "{phase}", '
            f"{self._operator(path)}{amounts}}}"
        )
