"""Small PyTorch traces of each vintage and vendor, made here."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from opscope.analyse.steps import steps
from opscope.analyse.summary import summary
from opscope.importers import Member, Options, read
from opscope.model import Kind, LinkKind, Session

Event = dict[str, Any]


def op(name: str, at: float, us: float, cat: str = "cpu_op", **more: Any) -> Event:
    """A complete event; `more` are its arguments, with _ for a blank, or `tid`."""
    tid, pid = more.pop("tid", 11), more.pop("pid", 7)
    args = {key.replace("_", " "): value for key, value in more.items()}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": us} | (
        {"args": args} if args else {}
    )


def launch(name: str, at: float, us: float, number: int, cat: str = "cuda_runtime") -> Event:
    return op(name, at, us, cat, correlation=number)


def work(name: str, at: float, us: float, number: int, cat: str = "kernel") -> Event:
    return op(name, at, us, cat, correlation=number, tid=3, pid=0)


def loaded(*events: Event, custom: tuple[str, ...] = (), **head: Any) -> Session:
    """The session of a document."""
    return of_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": events}), *custom)


def of_text(text: str, *custom: str) -> Session:
    member = Member("some.json", lambda: io.BytesIO(text.encode()))
    session = read(member, Options(custom))
    assert session.sight[0].host == "kineto"
    return session


def told(session: Session) -> list[tuple[str, str, int, int, str]]:
    """(name, kind, start, end, name of the owner), by start."""
    names = {int(row["id"]): session.names[row["name"]] for row in session.spans}
    rows = sorted(session.spans, key=lambda row: (row["start_ns"], -row["end_ns"]))
    return [
        (
            session.names[row["name"]],
            Kind(row["kind"]).name.lower(),
            int(row["start_ns"]),
            int(row["end_ns"]),
            names.get(int(row["owner"]), ""),
        )
        for row in rows
    ]


def links(session: Session, kind: LinkKind) -> list[tuple[str, str]]:
    names = {int(row["id"]): session.names[row["name"]] for row in session.spans}
    chosen = session.links[session.links["kind"] == kind]
    return [(names[int(link["source"])], names[int(link["target"])]) for link in chosen]


VINTAGES = [
    ("Operator", "Runtime", "Kernel", "Memcpy", "cudaLaunchKernel", "cudaMemcpyAsync"),
    ("cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "cudaLaunchKernel", "cudaMemcpyAsync"),
    ("cpu_op", "cuda_driver", "kernel", "gpu_memcpy", "cuLaunchKernelEx", "cuMemcpyAsync"),
    ("cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "hipLaunchKernel", "hipMemcpyWithStream"),
    ("cpu_op", "hip_runtime", "kernel", "gpu_memset", "hipModuleLaunchKernel", "hipMemsetAsync"),
    ("cpu_op", "mtia_runtime", "mtia_ccp_events", "mtia_ccp_events", "runFunction", "copyAsync"),
    ("cpu_op", "xpu_runtime", "kernel", "gpu_memcpy", "zeCommandListAppend", "urEnqueueMem"),
]


@pytest.mark.parametrize("vintage", VINTAGES)
def test_operators_runtime_calls_and_device_work_of_every_vintage(vintage: tuple[str, ...]) -> None:
    op_cat, api_cat, kernel_cat, copy_cat, start, copy = vintage
    session = loaded(
        op("lib::scale", 10, 50, op_cat, External_id=5),
        op("aten::mul", 15, 30, op_cat, External_id=6),
        launch(start, 20, 5, 77, api_cat),
        op("aten::copy_", 70, 20, op_cat),
        launch(copy, 75, 5, 78, api_cat),
        work("mul_kernel", 100, 40, 77, kernel_cat),
        work("Copy", 150, 10, 78, copy_cat),
    )
    assert told(session) == [
        ("lib::scale", "call", 10_000, 60_000, ""),
        ("aten::mul", "op", 15_000, 45_000, "lib::scale"),
        (start, "op", 20_000, 25_000, "lib::scale"),
        ("aten::copy_", "op", 70_000, 90_000, ""),
        (copy, "op", 75_000, 80_000, ""),
        ("mul_kernel", "device", 100_000, 140_000, "lib::scale"),
        ("Copy", "device", 150_000, 160_000, ""),
    ]
    assert links(session, LinkKind.LAUNCH) == [("aten::mul", "mul_kernel"), ("aten::copy_", "Copy")]
    assert {(lane.name, lane.kind) for lane in session.lanes} == {
        ("thread 11", "thread"),
        ("stream 3", "stream"),
    }
    (row,) = summary(session)
    assert (row.calls, row.wall_ns, row.sub_ns, row.untracked_ns) == (1, 50_000, 30_000, 20_000)
    assert (row.device_ns, row.python_ns, row.wait_ns) == (40_000, None, None)


def test_without_a_runtime_call_the_external_id_tells_the_operator() -> None:
    """In the older spelling too."""
    session = loaded(
        op("lib::a", 10, 5, External_id=5),
        op("lib::b", 20, 5, **{"external id": 6}),
        {**work("k", 100, 40, 0), "args": {"External id": 5}},
        {**work("l", 150, 40, 0), "args": {"external id": 6}},
        {**work("m", 200, 40, 0), "args": {"External id": 99}},
    )
    assert links(session, LinkKind.LAUNCH) == [("lib::a", "k"), ("lib::b", "l")]
    assert [(name, owner) for name, kind, *_, owner in told(session) if kind == "device"] == [
        ("k", "lib::a"),
        ("l", "lib::b"),
        ("m", ""),
    ]
    (found,) = session.processes[0].findings
    assert (found.what, found.count) == ("device spans without a launching operator", 1)


@pytest.mark.parametrize(
    ("at", "us", "start", "end"),
    [
        ("12345.678", "0.001", 12_345_678, 12_345_679),
        ("1616161616161616", "5", 1_616_161_616_161_616_000, 1_616_161_616_161_621_000),
        ("1616161616161616.123", "0.877", 1_616_161_616_161_616_123, 1_616_161_616_161_617_000),
        ("1616161616161616.5", "1.5", 1_616_161_616_161_616_500, 1_616_161_616_161_618_000),
        ('"1616161616161616.123"', '"2"', 1_616_161_616_161_616_123, 1_616_161_616_161_618_123),
        ('"12.25"', '"2.5"', 12_250, 14_750),
        ("1.5e3", "1e-1", 1_500_000, 1_500_100),
        ("-3.5", "1", -3_500, -2_500),
    ],
)
def test_stamps_are_exact_to_the_nanosecond(at: str, us: str, start: int, end: int) -> None:
    event = f'{{"ph":"X","cat":"cpu_op","name":"aten::a","pid":1,"tid":2,"ts":{at},"dur":{us}}}'
    session = of_text(f'{{"schemaVersion":1,"traceEvents":[{event}]}}')
    assert told(session) == [("aten::a", "op", start, end, "")]


def test_the_wall_clock_is_the_base_and_the_stamp() -> None:
    base = 1_767_189_312_000_000_000
    session = loaded(op("aten::a", 3743411230047.485, 67.32), baseTimeNanoseconds=base)
    (start,) = session.spans["start_ns"].tolist()
    assert start == 3_743_411_230_047_485
    assert session.processes[0].anchors == ((start, base + start),)
    epoch = loaded(op("aten::a", 1616161616161616, 5))
    (start,) = epoch.spans["start_ns"].tolist()
    assert epoch.processes[0].anchors == ((start, start),)


def test_the_rank_is_told_where_the_file_knows_it() -> None:
    some = op("aten::a", 1, 2)
    ranked = loaded(some, distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8})
    assert ranked.processes[0].notes == ("rank 3 of 8",)
    for info in ({"backend": "nccl"}, {}, None, [3], "rank 3"):
        assert loaded(some, distributedInfo=info).processes[0].notes == ()
    assert loaded(some).processes[0].notes == ()


def test_steps_and_annotations_own_nothing() -> None:
    session = loaded(
        op("ProfilerStep#4", 0, 100, "user_annotation"),
        op("my range", 10, 50, "user_annotation"),
        op("aten::mul", 20, 10),
    )
    assert told(session) == [
        ("ProfilerStep#4", "step", 0, 100_000, ""),
        ("my range", "range", 10_000, 60_000, ""),
        ("aten::mul", "op", 20_000, 30_000, ""),
    ]


def test_a_step_is_one_step_though_the_device_s_lane_shows_it_too() -> None:
    session = loaded(
        op("ProfilerStep#4", 0, 100, "user_annotation"),
        op("ProfilerStep#4", 20, 110, "gpu_user_annotation", tid=3, pid=0),
        work("k", 20, 110, 1),
    )
    assert [row.step for row in steps(session)] == ["ProfilerStep#4"]


def test_globs_make_operators_and_annotations_custom() -> None:
    events = (
        op("attention", 0, 100, "user_annotation"),
        op("aten::mul", 20, 10),
        op("aten::softmax", 200, 30),
        op("aten::exp", 210, 10),
        op("ProfilerStep#1", 0, 500, "user_annotation"),
    )
    assert summary(loaded(*events)) == ()
    session = loaded(*events, custom=("atten*", "*soft???"))
    assert [(row.op, row.calls, row.subs, row.wall_ns) for row in summary(session)] == [
        ("attention", 1, 1, 100_000),
        ("aten::softmax", 1, 1, 30_000),
    ]
    assert {op.kind for op in session.ops} == {"chosen"}


def test_operators_of_torch_s_own_namespaces_are_not_custom() -> None:
    names = ("aten::a", "c10d::b", "prims::c", "symm_mem::d", "my::e::f", "torch.x::g", "my::h i")
    session = loaded(*(op(name, 10 * at, 5) for at, name in enumerate(names)), op("my::h", 900, 1))
    assert [row.op for row in summary(session)] == ["my::h"]


def test_what_is_left_out_is_counted() -> None:
    session = loaded(
        op("module.py(3): f", 0, 100, "python_function"),
        op("aten::mul", 20, 10),
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 11, "ts": 5},
        {"ph": "M", "name": "thread_name", "pid": 7, "tid": 11, "ts": 0, "args": {"name": "main"}},
    )
    assert [lane.name for lane in session.lanes] == ["main"]
    assert {found.what: found.count for found in session.processes[0].findings} == {
        "events left out: python_function": 1,
        "events left out: cpu_instant_event": 1,
    }
