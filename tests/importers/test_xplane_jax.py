"""Traces that JAX records here and now, against what JAX's own reader finds in them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from opscope.analyse import calls, steps, summary
from opscope.importers.building import Builder, Options
from opscope.importers.xplane import read
from opscope.model import Kind, Session

pytest.importorskip("jax")
ProfileData = pytest.importorskip("jax.profiler").ProfileData

# In a process of its own: only one recording may run in a process, and JAX keeps its threads.
PROGRAM = """
import sys, threading
import numpy as np
import jax, jax.numpy as jnp
from jax.experimental import io_callback

jax.config.update("jax_cpu_enable_async_dispatch", False)

def sine(x):
    return np.sin(x)

def shown(x):
    for _ in range(4):
        x = jnp.cos(x)
    return np.asarray(x)

def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)

@jax.jit
def with_pure(x):
    return jax.pure_callback(sine, like(x), x) + 1

@jax.jit
def with_io(x):
    return io_callback(shown, like(x), x, ordered=True) * 2

@jax.custom_vjp
def mine(x):
    return jax.pure_callback(sine, like(x), x)

def forward(x):
    return mine(x), x

def backward(x, g):
    return (g * jax.pure_callback(np.cos, like(x), x),)

mine.defvjp(forward, backward)
gradient = jax.jit(jax.value_and_grad(lambda x: mine(x).sum()))
product = jax.jit(lambda a: (a @ a).sum())
x = jnp.ones((16, 16))

def step():
    with jax.profiler.TraceAnnotation("first half", who="me"):
        with_pure(x).block_until_ready()
        with_io(x).block_until_ready()
    with jax.profiler.TraceAnnotation("second half"):
        jax.block_until_ready(gradient(x))
    product(x).block_until_ready()

def in_thread():
    with jax.profiler.TraceAnnotation("in a thread"):
        with_pure(x).block_until_ready()

step()
options = jax.profiler.ProfileOptions()
options.python_tracer_level = int(sys.argv[2])
with jax.profiler.trace(sys.argv[1], profiler_options=options):
    for number in range(5):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step()
    threads = [threading.Thread(target=in_thread) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def recorded(folder: Path, level: int) -> bytes:
    """The trace of the program, with or without Python frames."""
    script = folder / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), str(folder), str(level)]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    (found,) = folder.glob("plugins/profile/*/*.xplane.pb")
    return found.read_bytes()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A trace without Python frames."""
    return recorded(tmp_path_factory.mktemp("plain"), 0)


@pytest.fixture(scope="module")
def with_frames(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The same program with Python frames, as JAX records by default."""
    return recorded(tmp_path_factory.mktemp("frames"), 1)


@pytest.fixture
def session(data: bytes) -> Session:
    """The session of the trace without frames."""
    return read(data, Builder("xplane"))


def of_kind(session: Session, kind: Kind) -> Counter[str]:
    """How often each name has that kind."""
    names = session.spans["name"][session.spans["kind"] == kind].tolist()
    return Counter(session.names[name] for name in names)


@pytest.mark.parametrize("which", ["data", "with_frames"])
def test_every_event_is_a_span_at_the_time_that_jax_tells(
    which: str, request: pytest.FixtureRequest
) -> None:
    data: bytes = request.getfixturevalue(which)
    session = read(data, Builder("xplane"))
    told = Counter(
        (round(event.start_ns), round(event.end_ns), "Buffer::Await" in event.name)
        for plane in ProfileData.from_serialized_xspace(data).planes
        for line in plane.lines
        for event in line.events
    )
    waits = {at for at, name in enumerate(session.names) if "Buffer::Await" in name}
    columns = (session.spans[column].tolist() for column in ("start_ns", "end_ns", "name"))
    found = Counter((start, end, name in waits) for start, end, name in zip(*columns, strict=True))
    assert found.total() == told.total()
    # JAX's reader does not join the two marks of a wait.
    assert all(wait for _, _, wait in found - told)


def test_names_are_those_that_jax_tells(data: bytes, session: Session) -> None:
    events = Counter(
        event.name
        for plane in ProfileData.from_serialized_xspace(data).planes
        for line in plane.lines
        for event in line.events
    )
    renamed = of_kind(session, Kind.CALL) + of_kind(session, Kind.STEP)
    mine = Counter(session.names[name] for name in session.spans["name"].tolist()) - renamed
    assert not mine - events
    left = events - mine
    assert left.total() == renamed.total()
    assert all(name == "train" or "_callback" in name for name in left)


def test_callbacks_are_custom_operators(session: Session) -> None:
    rows = {(row.op, row.phase): row for row in summary(session)}
    pure = rows["jit(with_pure)/pure_callback", "forward"]
    ordered = rows["jit(with_io)/io_callback", "forward"]
    back = next(row for row in rows.values() if row.phase == "backward")
    assert (pure.calls, ordered.calls, back.calls) == (8, 5, 5)
    assert len(session.ops) == 4
    # Four times jnp.cos in JAX, with the work of each, and numpy.asarray of the last.
    assert ordered.subs == 4 * 2 * 5
    assert pure.subs == 0
    assert pure.dispatch_ns > 0
    for op in session.ops:
        assert op.file.endswith("program.py")
        assert (op.host, op.kind, op.native) == ("jax", "ffi", False)
    # Of a callback in a gradient JAX writes down where what is differentiated was called.
    lines = PROGRAM.splitlines()
    assert {lines[op.line - 1].strip() for op in session.ops} == {
        "return jax.pure_callback(sine, like(x), x) + 1",
        "return io_callback(shown, like(x), x, ordered=True) * 2",
        "return jax.pure_callback(sine, like(x), x)",
        "gradient = jax.jit(jax.value_and_grad(lambda x: mine(x).sum()))",
    }


def test_the_parts_of_each_call_add_up(session: Session) -> None:
    for row in calls(session):
        parts = (row.sub_ns, row.wait_ns, row.dispatch_ns, row.runtime_ns, row.untracked_ns)
        assert row.wall_ns == sum(part or 0 for part in parts)


def test_annotations_and_steps_are_the_users(session: Session) -> None:
    ranges = of_kind(session, Kind.RANGE)
    mine = {name: count for name, count in ranges.items() if not name.startswith("PjitFunction(")}
    assert mine == {"first half": 5, "second half": 5, "in a thread": 3}
    rows = steps(session)
    assert [(row.step, row.calls) for row in rows] == [(f"train {at}", 4) for at in range(5)]


def test_each_jitted_call_is_one_operator(session: Session) -> None:
    ops = of_kind(session, Kind.OP)
    assert ops["PjitFunction(with_pure)"] == 8
    assert ops["PjitFunction(cos)"] == 20
    assert of_kind(session, Kind.RANGE)["PjitFunction(cos)"] == 20


def test_a_python_frame_can_be_chosen(with_frames: bytes) -> None:
    session = read(with_frames, Builder("xplane", Options(("$program.py:* shown",))))
    rows = [row for row in summary(session) if row.op.endswith(" shown")]
    assert [(row.calls, row.subs) for row in rows] == [(5, 40)]
    assert rows[0].path[0] == "jit(with_io)/io_callback"


def test_nothing_is_odd(session: Session) -> None:
    assert not session.processes[0].damage
    assert not session.processes[0].findings
    assert session.processes[0].anchors[0][1] > 10**18
    assert session.sight[0].version
