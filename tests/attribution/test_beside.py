"""What a call caused on other lanes, later, and on devices; paths; owners that make no sense."""

from __future__ import annotations

from tests.builders import op, session, span

from opscope.analyse import calls, subs, summary
from opscope.attribution import UNKNOWN, attribute, owner_rows
from opscope.model import Kind, Phase, Process, Sight


def test_elsewhere_adds_lanes_up_and_the_union_does_not() -> None:
    spans = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=100),
        span(2, "t", Kind.TASK, 10, 60, owner=1, lane="w1", cpu_ns=30),
        span(3, "o", Kind.OP, 20, 40, owner=1, lane="w1", cpu_ns=20),
        span(4, "o", Kind.OP, 50, 130, owner=1, lane="w2"),
        span(5, "gc", Kind.RUNTIME, 300, 400, lane="w2"),
    ]
    beside = attribute(session(spans)).beside
    assert beside.elsewhere.tolist() == [50 + 80]
    assert beside.elsewhere_union.tolist() == [120]
    # The task: 50 ns, of which 20 its operator, 10 of its own CPU time, the rest waiting.
    assert beside.elsewhere_python.tolist() == [10]
    assert beside.span.tolist() == [130]
    assert beside.subs.tolist() == [2]


def test_the_whole_subtree_counts_but_each_call_counts_its_own_subs() -> None:
    spans = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=90),
        span(2, "B", Kind.CALL, 10, 50, owner=1, cpu_ns=30),
        span(3, "o", Kind.OP, 60, 90, owner=2, lane="w"),
    ]
    beside = attribute(session(spans)).beside
    assert beside.elsewhere.tolist() == [30, 30]
    assert beside.subs.tolist() == [1, 1]
    assert beside.sub_wait.tolist() == [10, 0]


def test_what_a_sub_call_waited_after_the_call_is_not_in_it() -> None:
    """A generator, say, that the call began and somebody else ended."""
    spans = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=50),
        span(2, "B", Kind.CALL, 50, 200, owner=1, cpu_ns=0),
    ]
    found = attribute(session(spans))
    assert found.parts.wait.tolist() == [0, 150]
    assert found.beside.sub_wait.tolist() == [50, 0]


def test_devices_are_not_measured_unless_somebody_could_see_them() -> None:
    spans = [span(1, "A", Kind.CALL, 0, 100)]
    blind = attribute(session(spans, sight=[Sight("python")])).beside
    assert (blind.device.tolist(), blind.device_union.tolist()) == ([UNKNOWN], [UNKNOWN])
    seeing = [Sight("python", sees=("device",))]
    kernels = [
        span(2, "k", Kind.DEVICE, 10, 60, owner=1, lane="s1"),
        span(3, "k", Kind.DEVICE, 40, 140, owner=1, lane="s2"),
    ]
    beside = attribute(session(spans + kernels, sight=seeing)).beside
    assert (beside.device.tolist(), beside.device_union.tolist()) == ([150], [130])
    assert (beside.elsewhere.tolist(), beside.span.tolist()) == ([0], [140])


def test_queue_is_from_submission_to_start() -> None:
    spans = [
        span(1, "A", Kind.CALL, 50, 100, submitted_ns=20),
        span(2, "A", Kind.CALL, 150, 200),
    ]
    assert attribute(session(spans)).beside.queue.tolist() == [30, UNKNOWN]


def test_paths_keep_operators_of_one_name_and_phases_apart() -> None:
    one, two = op("A", registration=1), op("A", registration=2)
    spans = [
        span(1, one, Kind.CALL, 0, 100, phase=Phase.FORWARD),
        span(2, two, Kind.CALL, 10, 20, owner=1),
        span(3, two, Kind.CALL, 30, 40, owner=1, phase=Phase.BACKWARD),
        span(4, one, Kind.CALL, 200, 300, phase=Phase.BACKWARD),
    ]
    found = attribute(session(spans))
    paths = [found.paths.of_call[row] for row in range(4)]
    assert len(set(paths)) == 4
    shown = [found.paths.shown(path, found.session.names) for path in paths]
    assert shown == [("A",), ("A", "A"), ("A", "_backward_A"), ("_backward_A",)]


def test_owners_in_a_circle_or_unknown_count_as_none() -> None:
    spans = [
        span(1, "A", Kind.CALL, 0, 100, owner=2),
        span(2, "B", Kind.CALL, 0, 100, owner=1),
        span(3, "C", Kind.CALL, 0, 100, owner=3),
        span(4, "o", Kind.OP, 0, 10, owner=99),
        span(5, "o", Kind.OP, 0, 10, owner=1),
    ]
    made = session(spans)
    up = owner_rows(made.spans)
    assert up.tolist()[:4] == [-1, -1, -1, -1]
    attribute(made)  # and climbing them ends


def test_time_in_a_pause_counts_neither_elsewhere_nor_on_a_device_nor_as_a_sub_operator() -> None:
    spans = [
        span(1, "A", Kind.CALL, 0, 100, cpu_ns=100),
        span(2, "t", Kind.TASK, 10, 60, owner=1, lane="w1", cpu_ns=50),
        span(3, "late", Kind.OP, 25, 35, owner=1, lane="w2"),  # all of it in the first pause
        span(4, "o", Kind.OP, 30, 130, owner=1, lane="w2"),
        span(5, "k", Kind.DEVICE, 50, 120, owner=1, lane="s1"),
        span(6, "own", Kind.OP, 15, 45, owner=1),
    ]
    # Two that overlap, one of no length, one of another process.
    paused = [(0, 20, 40), (0, 38, 40), (0, 70, 90), (0, 95, 95), (1, 0, 1000)]
    processes = [Process(pid=41, complete=True), Process(pid=42, complete=True)]
    found = session(spans, pauses=paused, processes=processes)
    beside = attribute(found).beside
    assert beside.elsewhere.tolist() == [30 + 0 + 70]
    assert beside.elsewhere_union.tolist() == [30 + 70 - 20]
    assert (beside.device.tolist(), beside.device_union.tolist()) == ([50], [50])
    assert (beside.span.tolist(), beside.queue.tolist()) == ([130], [UNKNOWN])
    (call,), (row,) = calls(found), summary(found)
    assert (call.wall_ns, call.sub_ns) == (60, 10)
    assert (row.elsewhere_ns, row.elsewhere_union_ns, row.device_ns) == (100, 80, 50)
    times = {sub.name: (sub.total_ns, sub.self_ns, sub.max_ns) for sub in subs(found)}
    assert times == {
        "t": (30, 30, 30),
        "late": (0, 0, 0),
        "o": (70, 70, 70),
        "k": (50, 50, 50),
        "own": (10, 10, 10),
    }
