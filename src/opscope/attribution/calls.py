"""`attribute`: what the analyses need to know about the calls of a session, worked out once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.belonging import Belonging
from opscope.attribution.beside import Beside, beside
from opscope.attribution.columns import Columns
from opscope.attribution.nesting import Nesting, nest
from opscope.attribution.owners import owner_rows
from opscope.attribution.parts import Parts, split
from opscope.attribution.paths import Paths, call_paths
from opscope.attribution.running import Running, running
from opscope.model import Flag, Kind, Session

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """A session's spans explained: `calls` are the rows of its calls, `place` theirs in `parts`."""

    session: Session
    nesting: Nesting  #: by time alone, as spans are drawn
    running: Running  #: the same without those who were suspended
    owner: Ints  #: row of each span's owner, -1: none
    paths: Paths
    parts: Parts  #: of calls and tasks
    calls: Ints
    place: Ints
    beside: Beside
    flags: Ints  #: of each call: what was recorded and what was worked out


def attribute(session: Session) -> Attribution:
    """Owners, nesting, paths, parts and what stands beside them. The session stays as it is."""
    spans = Columns(session.spans)
    up = owner_rows(spans)
    nesting = nest(spans)
    ran = running(spans, nesting, up)
    belonging = Belonging(spans, ran, up)
    parts = split(session, belonging)
    calls = np.flatnonzero(spans["kind"] == int(Kind.CALL)).astype(np.int64)
    place = np.searchsorted(parts.rows, calls).astype(np.int64)
    around = beside(session, calls, parts, belonging)
    flags = spans["flags"][calls].astype(np.int64)
    outlived = around.span > np.maximum(spans["end_ns"][calls] - spans["start_ns"][calls], 0)
    for flag, which in (
        (Flag.ESTIMATED, parts.estimated[place]),
        (Flag.PAUSED, parts.paused[place]),
        (Flag.LOSSY, parts.lossy[place]),
        (Flag.OUTLIVED, outlived),
    ):
        flags |= np.where(which, int(flag), 0)
    return Attribution(
        session=session,
        nesting=nesting,
        running=ran,
        owner=up,
        paths=call_paths(spans, up, calls),
        parts=parts,
        calls=calls,
        place=place,
        beside=around,
        flags=flags,
    )
