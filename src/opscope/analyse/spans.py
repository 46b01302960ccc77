"""Every span as one flat record, with all that was worked out about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opscope.analyse.basis import Basis, basis
from opscope.analyse.rows import KIND_WORDS, PHASE_WORDS
from opscope.model import Kind, Session, flag_names

SPAN_KEYS = (
    *("id", "owner", "parent", "kind", "phase", "name", "op", "key", "path", "domain"),
    *("process", "lane", "thread", "start_ns", "end_ns", "submitted_ns", "cpu_ns", "flags"),
)

#: Where a span belongs, as MXNet named it: Chrome's category.
CUSTOM, PLAIN, CHORE = "Custom Operator", "operator", "runtime"


def domain(kind: int, path: int) -> str:
    """The domain of a span of that kind; `path` as in `Basis.path`."""
    if kind == Kind.RUNTIME:
        return CHORE
    return CUSTOM if path >= 0 else PLAIN


def all_flags(base: Basis) -> list[int]:
    """The flags of each span, by row; of calls also what was worked out."""
    flags = base.session.spans["flags"].astype(np.int64)
    flags[base.attribution.calls] = base.attribution.flags
    answer: list[int] = flags.tolist()
    return answer


def span_records(session: Session) -> Iterator[dict[str, Any]]:
    """One dict for each span, in the session's order; its keys are `SPAN_KEYS`.

    Times are nanoseconds from the start of the session. `owner` and `parent` (the span around it on
    its lane) are ids. What is not known, or there is none of, is None. `path` is a list.
    """
    base, spans, zero = basis(session), session.spans, session.start_ns
    attribution = base.attribution
    around = attribution.nesting.parent
    parents = np.where(around >= 0, spans["id"][around], 0).tolist() if len(spans) else []
    process = base.process_ids()
    words = {flags: flag_names(flags) for flags in set(all_flags(base))}
    for span, parent, path, flags in zip(
        spans.tolist(), parents, base.path.tolist(), all_flags(base), strict=True
    ):
        ident, owner, name, kind, phase, _, lane, _, start_ns, end_ns, submitted_ns, cpu_ns = span
        text = session.names[name]
        yield {
            "id": ident,
            "owner": owner or None,
            "parent": parent or None,
            "kind": KIND_WORDS[kind],
            "phase": PHASE_WORDS[phase],
            "name": text,
            "op": base.op[path] if path >= 0 else None,
            "key": base.key[path] if path >= 0 else None,
            "path": list(span_path(base, kind, path, text)),
            "domain": domain(kind, path),
            "process": process[lane],
            "lane": session.lanes[lane].name,
            "thread": session.lanes[lane].thread or None,
            "start_ns": start_ns - zero,
            "end_ns": end_ns - zero,
            "submitted_ns": submitted_ns - zero if submitted_ns > 0 else None,
            "cpu_ns": cpu_ns if cpu_ns >= 0 else None,
            "flags": list(words[flags]),
        }


def span_path(base: Basis, kind: int, path: int, text: str) -> tuple[str, ...]:
    """The names on show of a span: its own path if a call, else its owner's path and its name."""
    if kind == Kind.CALL:
        return base.shown[path]
    return (*base.shown[path], text) if path >= 0 else (text,)
