"""The threads of an MXNet profile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from opscope.attribution.totals import distinct
from opscope.importers.building import Builder
from opscope.importers.mxnet.events import Slices, Table

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def lanes_of(slices: Slices, engine: Bools, api: Bools, table: Table, builder: Builder) -> Ints:
    """The lane of each slice: its thread, by the hash that MXNet tells of it.

    Tasks, frames and events of the user's, which may overlap, stand on lanes of their own.
    """
    threads, processes = table.threads.all(), table.rows.all()
    entries, of = distinct(slices.thread, np.where(engine | api, -1, slices.row))
    lanes = []
    for thread, row in entries.tolist():
        name, key = f"thread {threads[thread]}", ("thread", threads[thread])
        if row < 0:
            lanes.append(builder.lane(key, name))
        else:
            title = table.titles.get(processes[row], f"process {processes[row]}")
            lanes.append(builder.lane((*key, processes[row]), f"{title}, {name}"))
    # What the engine ran on a device tells which thread serves it.
    on = engine & ~slices.task
    for thread, row in distinct(slices.thread[on], slices.row[on])[0].tolist():
        title = table.titles.get(processes[row], "")
        if title and not title.startswith("cpu"):
            lane = builder.lane(("thread", threads[thread]), "")
            builder.rename_lane(lane, f"{builder.lanes[lane].name}, {title}")
    return np.array(lanes, np.int64)[of]
