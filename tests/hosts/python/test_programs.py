"""Made-up programs, with recording switched on, off and over anywhere: every part is the truth."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hosts.checks import PARTS, check
from tests.hosts.python.programs import PROGRAMS, World, path

from opscope.analyse import calls
from opscope.testing import assert_restored


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    first=PROGRAMS,
    generators=st.lists(st.lists(PROGRAMS, min_size=1, max_size=3), max_size=3),
    between=st.lists(PROGRAMS, max_size=6),
    begun=st.booleans(),
)
def test_every_part_of_every_call(
    first: list[Any], generators: list[list[Any]], between: list[list[Any]], begun: bool
) -> None:
    world = World()
    with assert_restored():
        if begun:
            world.switch("start")
        world.run(first)
        running = [world.generator(f"g{n}", steps) for n, steps in enumerate(generators)]
        for number in range(3):
            for it in running:
                next(it, None)
                world.run(between[number] if number < len(between) else [])
        world.run([action for program in between[3:] for action in program])
        for state in ("start", "stop"):
            world.switch(state)
        del running
    session = world.scene.session
    check(session)
    assert session.processes[0].broken == ()
    found = [
        (row.path, {part: getattr(row, f"{part}_ns") or 0 for part in PARTS}, set(row.flags))
        for row in calls(session)
    ]
    expected = [(path(node), world.truth(node), node.flags) for node in world.nodes]
    for row in found:
        row[2].discard("paused")
    key = lambda row: (row[0], sorted(row[1].items()), sorted(row[2]))  # noqa: E731
    assert sorted(found, key=key) == sorted(expected, key=key)
