"""Every link of a session: those recorded, and those that follow from owners and submissions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from opscope.analyse.basis import basis
from opscope.attribution import among
from opscope.model import LINK, Kind, LinkKind, Rows, Session

LINK_KEYS = ("kind", "source", "target")

_WORDS = {int(kind): kind.name.lower() for kind in LinkKind}


def all_links(session: Session) -> Rows:
    """Rows of type `LINK`, each once: the recorded ones in their order, then what follows.

    A `push` follows for each owned operator, call and device span whose submission is known, and a
    `spawn` for each owned task, from the owning call.
    """
    spans, owner = session.spans, basis(session).attribution.owner
    owned = owner >= 0
    pushed = owned & (spans["submitted_ns"] > 0) & among(spans, (Kind.OP, Kind.CALL, Kind.DEVICE))
    spawned = owned & among(spans, (Kind.TASK,))
    tables = [session.links]
    for kind, mask in ((LinkKind.PUSH, pushed), (LinkKind.SPAWN, spawned)):
        table = np.empty(int(mask.sum()), LINK)
        table["kind"] = kind
        table["source"] = spans["id"][owner[mask]]
        table["target"] = spans["id"][mask]
        tables.append(table)
    every: Rows = np.concatenate(tables)
    _, first = np.unique(every, return_index=True)
    distinct: Rows = every[np.sort(first)]
    return distinct


def link_records(session: Session) -> Iterator[dict[str, Any]]:
    """One dict for each link; `source` and `target` are ids of spans."""
    for kind, source, target in all_links(session).tolist():
        yield {"kind": _WORDS.get(kind, str(kind)), "source": source, "target": target}
