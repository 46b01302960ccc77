"""Device work to the host operator that launched it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.late.events import Events, Role

Ints = NDArray[np.int64]


def launchers(events: Events) -> tuple[Ints, Ints]:
    """(device event, host event that launched it or -1) for all device events.

    By the number that a runtime call shares with what it launched, whatever that call is named;
    else by the number of the operator that the device's own profiler wrote down.
    """
    device = np.flatnonzero(events.role == Role.DEVICE).astype(np.int64)
    host = np.isin(events.role, (int(Role.API), int(Role.WAIT)))
    found = _by(events.correlation, np.flatnonzero(host), events.correlation[device])
    rest = found < 0
    if rest.any():
        ops = np.flatnonzero(~host & (events.role != Role.DEVICE))
        found[rest] = _by(events.external, ops, events.external[device[rest]])
    return device, found


def _by(column: Ints, among: Ints, wanted: Ints) -> Ints:
    """The first of `among` whose number is the wanted one (0 is none), -1 where there is none."""
    keys = column[among]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    hit = (keys[place] == wanted) & (wanted != 0)
    return np.where(hit, among[order[place]], -1)
