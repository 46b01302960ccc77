"""XLA's traces from bytes written by hand: spans, owners, custom operators, devices, damage."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.importers.xplane_writer import Call, Plane, Ref, block, metadata, space, varint, whole

from opscope.importers.building import Builder, Options
from opscope.importers.xplane import read
from opscope.model import Flag, Kind, LinkKind, Phase, Session

US = 1_000_000  # picoseconds
CPU_CALLBACK = "xla_ffi_python_cpu_callback"


def imported(data: bytes, *custom: str) -> Session:
    """The session of a file's bytes."""
    return read(data, Builder("xplane", Options(custom)))


def told(session: Session) -> list[tuple[str, str, int, int, str]]:
    """(name, kind, start, end, name of the owner) of each span, by lane and start."""
    owners = {span["id"]: session.names[span["name"]] for span in session.spans}
    order = sorted(session.spans, key=lambda s: (s["lane"], s["start_ns"], -s["end_ns"]))
    return [
        (
            session.names[span["name"]],
            Kind(span["kind"]).name.lower(),
            int(span["start_ns"]),
            int(span["end_ns"]),
            owners.get(span["owner"], ""),
        )
        for span in order
    ]


def named(session: Session, name: str) -> Any:
    """The one span of that name."""
    (found,) = (span for span in session.spans if session.names[span["name"]] == name)
    return found


def findings(session: Session) -> dict[str, int]:
    """What was odd, and how often."""
    return {one.what: one.count for one in session.processes[0].findings}


def thunk(plane: Plane, name: str, start: int, end: int, program: int, **more: Any) -> bytes:
    """An instruction of a program as XLA's CPU client writes it."""
    stats = {"hlo_op": Ref(name), "hlo_module": Ref(f"jit_f_{program}"), "program_id": program}
    return plane.event(name, start, end, **stats, run_id=-5, _src="thunk.cc", **more)


def test_events_are_spans_on_the_lanes_of_their_lines() -> None:
    plane = Plane("/host:CPU")
    first = plane.line(4242, "python", 1000)
    first += [plane.event("PjitFunction(f)", 0, 5 * US), plane.event("DevicePut", US, 2 * US)]
    second = plane.line(-77, "tf_XLAEigen/-77", 2000)
    second.append(plane.event("Codegen", 0, US))
    session = imported(space(plane, host="vm"))
    assert told(session) == [
        ("PjitFunction(f)", "op", 1000, 6000, ""),
        ("DevicePut", "op", 2000, 3000, ""),
        ("Codegen", "op", 2000, 3000, ""),
    ]
    assert [(lane.name, lane.kind, lane.thread) for lane in session.lanes] == [
        ("python", "thread", 4242),
        ("tf_XLAEigen/-77", "thread", 0),
    ]
    assert session.processes[0].notes == ("recorded on vm",)
    assert not findings(session)
    assert not session.processes[0].damage


def test_picoseconds_round_half_to_even_and_keep_their_order() -> None:
    plane = Plane("/host:CPU")
    line = plane.line(1, "python", 10)
    line += [plane.event("a::b", 500, 1500), plane.event("a::b", 1500, 2500)]
    line += [plane.event("a::b", 2501, 3499), plane.event("a::b", -1500, -500)]
    spans = imported(space(plane)).spans
    times = sorted(zip(spans["start_ns"].tolist(), spans["end_ns"].tolist(), strict=True))
    assert times == [(8, 10), (10, 12), (12, 12), (13, 13)]


def test_the_clock_is_that_of_the_wall() -> None:
    plane = Plane("/host:CPU")
    plane.line(1, "python", 500).append(plane.event("DevicePut", 0, US))
    environment = Plane("Task Environment", {"profile_start_time": 1_796_004_624_696_551_815})
    anchors = imported(space(plane, environment)).processes[0].anchors
    assert anchors == ((500, 1_796_004_624_696_552_315),)
    late = Plane("/host:CPU")
    late.line(1, "python", 1_796_004_624_000_000_000).append(late.event("DevicePut", 0, US))
    (anchor,) = imported(space(late)).processes[0].anchors
    assert anchor[0] == anchor[1] == 1_796_004_624_000_000_000
    assert imported(space(plane)).processes[0].anchors == ()


def test_callbacks_are_custom_operators_with_what_runs_inside() -> None:
    plane = Plane("/host:CPU")
    line = plane.line(1, "python")
    line += [
        plane.event("PjitFunction(f)", 0, 20 * US),
        plane.event("PjitFunction(f)", 1000, 20 * US - 1000),
        thunk(plane, "pure_callback.1", US, 15 * US, 7, _pt=0, _p=9),
        plane.event("shard_args", 2 * US, 4 * US),
        plane.event("DevicePutWithSharding", 2 * US, 3 * US),
        plane.event("PythonRefManager::CollectGarbage", 4 * US, 5 * US),
        plane.event("PjitFunction(sin)", 5 * US, 9 * US),
        plane.event("ParseArguments", 5 * US + 5, 6 * US),
        thunk(plane, "wrapped_sine", 7 * US, 8 * US, 3),
        plane.event("end: pure_callback.1", 14 * US, 14 * US, _ct=0, _c=9),
    ]
    session = imported(
        space(
            metadata({7: [Call("pure_callback.1", CPU_CALLBACK, "jit(f)/pure_callback", 12)]}),
            plane,
        )
    )
    call = "jit(f)/pure_callback"
    assert told(session) == [
        ("PjitFunction(f)", "op", 0, 20000, ""),
        ("PjitFunction(f)", "range", 1, 19999, ""),
        (call, "call", 1000, 15000, ""),
        ("shard_args", "dispatch", 2000, 4000, call),
        ("DevicePutWithSharding", "dispatch", 2000, 3000, call),
        ("PythonRefManager::CollectGarbage", "runtime", 4000, 5000, ""),
        ("PjitFunction(sin)", "op", 5000, 9000, call),
        ("ParseArguments", "runtime", 5000, 6000, ""),
        ("wrapped_sine", "op", 7000, 8000, call),
        ("end: pure_callback.1", "runtime", 14000, 14000, ""),
    ]
    (op,) = session.ops
    assert (op.host, op.kind, op.file, op.line, op.native) == ("jax", "ffi", "model.py", 12, False)
    assert op.key == "jax:jit(f)/pure_callback#1"
    assert named(session, call)["phase"] == Phase.FORWARD
    assert named(session, call)["flags"] & Flag.INFERRED
    assert session.sight[0].version == "0.10.2"


def test_a_callback_of_a_gradient_is_backward_and_so_is_what_it_owns() -> None:
    plane = Plane("/host:CPU")
    line = plane.line(1, "python")
    line += [thunk(plane, "pure_callback.1", 0, 9 * US, 7), plane.event("DevicePut", US, 2 * US)]
    path = "jit(f)/transpose(jvp())/pure_callback"
    session = imported(space(metadata({7: [Call("pure_callback.1", CPU_CALLBACK, path)]}), plane))
    assert session.spans["phase"].tolist() == [Phase.BACKWARD, Phase.BACKWARD]


def test_operators_are_told_apart_by_place_and_not_by_program() -> None:
    def at(name: str, line: int) -> Call:
        return Call(name, CPU_CALLBACK, "jit(f)/pure_callback", line)

    plane = Plane("/host:CPU")
    line = plane.line(1, "python")
    for number, (name, program) in enumerate(
        [("cb.1", 7), ("cb.2", 7), ("cb.3", 7), ("cb.9", 8), ("cb.1", 9)]
    ):
        line.append(thunk(plane, name, 2 * number * US, (2 * number + 1) * US, program))
    programs = {
        7: [at("cb.1", 5), at("cb.2", 5), at("cb.3", 6)],
        8: [at("cb.9", 5)],
        9: [at("cb.1", 99)],
    }
    session = imported(space(metadata(programs), plane))
    order = session.spans[session.spans["start_ns"].argsort()]
    key = dict(zip(session.op_names, (op.registration for op in session.ops), strict=True))
    assert [key[name] for name in order["name"].tolist()] == [1, 2, 3, 1, 4]
    assert [op.line for op in session.ops] == [5, 5, 6, 99]


def test_ffi_targets_are_native_and_jaxs_own_are_no_custom_operators() -> None:
    plane = Plane("/host:CPU")
    line = plane.line(1, "python")
    line += [
        thunk(plane, "ffi_call.3", 0, US, 7),
        thunk(plane, "cholesky.0", 2 * US, 3 * US, 7),
        thunk(plane, "custom-call.5", 4 * US, 5 * US, 7),
        thunk(plane, "custom-call.6", 6 * US, 7 * US, 7),
        thunk(plane, "custom-call.7", 8 * US, 9 * US, 88),
    ]
    calls = [
        Call("ffi_call.3", "my_rms_norm", "jit(f)/ffi_call"),
        Call("cholesky.0", "lapack_spotrf_ffi", "jit(f)/cholesky"),
        Call("custom-call.5", "Sharding", "jit(f)/sharding"),
        Call("custom-call.6", "triton_kernel_call", "jit(f)/pallas_call"),
    ]
    session = imported(space(metadata({7: calls}), plane))
    assert [(name, kind) for name, kind, *_ in told(session)] == [
        ("my_rms_norm", "call"),
        ("cholesky.0", "op"),
        ("custom-call.5", "op"),
        ("jit(f)/pallas_call", "call"),
        ("jit_f_88/custom-call.7", "call"),
    ]
    assert {op.name: op.native for op in session.ops} == {
        "my_rms_norm": True,
        "jit(f)/pallas_call": True,
        "jit_f_88/custom-call.7": True,
    }


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("pure_callback.12", False),
        ("io_callback", False),
        ("debug_callback.1", False),
        ("xla_python_cpu_callback", False),
        ("xla_ffi_python_cpu_callback", False),
        ("xla_ffi_partitioned_python_gpu_callback.1", False),
        ("ffi_call.3", True),
        ("custom-call.3", True),
    ],
)
def test_without_programs_names_give_custom_operators_away(name: str, native: bool) -> None:
    plane = Plane("/host:CPU")
    plane.line(1, "python").append(plane.event(name, 0, US))
    session = imported(space(plane))
    assert session.spans["kind"].tolist() == [Kind.CALL]
    assert [op.native for op in session.ops] == [native]


def test_what_the_user_chooses_is_a_custom_operator() -> None:
    plane = Plane("/host:CPU")
    line = plane.line(1, "python")
    line += [
        plane.event("$model.py:12 host_sin", 0, 9 * US),
        plane.event("DevicePut", US, 2 * US),
        plane.event("$model.py:20 other", 3 * US, 4 * US),
    ]
    session = imported(space(plane), "*host_sin")
    assert told(session) == [
        ("$model.py:12 host_sin", "call", 0, 9000, ""),
        ("DevicePut", "op", 1000, 2000, "$model.py:12 host_sin"),
        ("$model.py:20 other", "range", 3000, 4000, "$model.py:12 host_sin"),
    ]


def test_a_chosen_operator_right_inside_itself_is_one_call_and_counted() -> None:
    plane = Plane("/host:CPU")
    plane.line(1, "python").extend([plane.event("mine", 0, 9 * US), plane.event("mine", US, US)])
    session = imported(space(plane), "mine")
    assert len(session.spans) == 1
    assert findings(session) == {"calls right inside a call of the same operator (told as one)": 1}


def test_annotations_and_steps() -> None:
    plane = Plane("/host:CPU")
    line = plane.line(1, "python")
    line += [
        plane.event("train", 0, 20 * US, step_num=3, _r=1),
        plane.event("forward", US, 9 * US, who="me"),
        plane.event("half", 2 * US, 3 * US),
        plane.event("backend_compile_and_load", 4 * US, 8 * US),
        plane.event("algsimp", 5 * US, 6 * US),
        plane.event("wrapped", 10 * US, 11 * US, hlo_op=Ref("wrapped")),
        thunk(plane, "pure_callback.1", 12 * US, 15 * US, 7),
        plane.event("inside", 13 * US, 14 * US),
    ]
    plane.line(2, "tf_pool/9").append(plane.event("algsimp", 0, US))
    call = Call("pure_callback.1", CPU_CALLBACK, "cb")
    session = imported(space(metadata({7: [call]}), plane))
    assert [(name, kind) for name, kind, *_ in told(session)] == [
        ("train 3", "step"),
        ("forward", "range"),
        ("half", "range"),
        ("backend_compile_and_load", "op"),
        ("algsimp", "op"),
        ("wrapped", "op"),
        ("cb", "call"),
        ("inside", "range"),
        ("algsimp", "op"),
    ]


def test_a_wait_lasts_from_its_first_mark_to_its_second() -> None:
    plane = Plane("/host:CPU")
    line = plane.line(1, "python")
    await_ = "CommonPjRtBuffer::Await"
    line += [
        plane.event(await_, 0, US, _pt=0, _p=4),
        plane.event(await_, 8 * US, 9 * US, _ct=0, _c=4),
        plane.event(await_, 20 * US, 21 * US, _pt=0, _p=5),
        plane.event("ThunkExecutor::Execute (wait for completion)", 30 * US, 32 * US),
        plane.event("cuStreamSynchronize", 40 * US, 42 * US, correlation_id=9),
    ]
    assert [one[1:4] for one in told(imported(space(plane)))] == [
        ("wait", 0, 9000),
        ("wait", 8000, 9000),
        ("wait", 20000, 21000),
        ("wait", 30000, 32000),
        ("wait", 40000, 42000),
    ]


def test_work_of_a_gpu_is_counted_once_and_belongs_to_what_launched_it() -> None:
    host, device = Plane("/host:CPU"), Plane("/device:GPU:0")
    host.line(11, "python").extend(
        [
            thunk(host, "custom-call.2", 0, 5 * US, 7),
            host.event("cuLaunchKernel", US, 2 * US, correlation_id=31),
            host.event("cuLaunchKernel", 6 * US, 7 * US, correlation_id=32),
        ]
    )
    for number, name in enumerate(["Steps", "XLA Modules", "XLA Ops", "Framework Ops"]):
        device.line(100 + number, name).append(device.event(f"{name}!", 10 * US, 20 * US))
    device.line(13, "Stream #13(Kernel)").extend(
        [
            device.event(
                "my_kernel", 10 * US, 12 * US, correlation_id=31, hlo_op=Ref("custom-call.2")
            ),
            device.event("gemm", 13 * US, 14 * US, correlation_id=32),
            device.event("memset", 15 * US, 16 * US, correlation_id=99),
        ]
    )
    calls = {7: [Call("custom-call.2", "my_norm", "jit(f)/ffi_call")]}
    session = imported(space(metadata(calls), host, device))
    assert told(session)[-7:] == [
        ("Steps!", "range", 10000, 20000, ""),
        ("XLA Modules!", "range", 10000, 20000, ""),
        ("XLA Ops!", "range", 10000, 20000, ""),
        ("Framework Ops!", "range", 10000, 20000, ""),
        ("my_kernel", "device", 10000, 12000, "my_norm"),
        ("gemm", "device", 13000, 14000, ""),
        ("memset", "device", 15000, 16000, ""),
    ]
    kernel = named(session, "my_kernel")
    assert (kernel["submitted_ns"], session.lanes[kernel["submitted_lane"]].name) == (
        1000,
        "python",
    )
    launches = session.links[session.links["kind"] == LinkKind.LAUNCH]
    assert len(launches) == 2
    assert session.lanes[kernel["lane"]].kind == "stream"
    assert findings(session)["device spans without a launching operator"] == 1
    assert "device" in session.sight[0].sees


def test_on_a_device_without_streams_the_innermost_instructions_are_its_work() -> None:
    host, device = Plane("/host:CPU"), Plane("/device:TPU:0")
    host.line(11, "python").append(host.event("TpuExecute", 0, US, run_id=5))
    device.line(1, "XLA Modules").append(device.event("jit_f(7)", 2 * US, 30 * US, run_id=5))
    device.kind(
        '%c = f32[] custom-call(), custom_call_target="tpu_custom_call"', "c.1", {"program_id": 7}
    )
    device.kind('%k = f32[] custom-call(), custom_call_target="mine"', "k.1", {"program_id": 8})
    device.kind("%w = while()", "while.1")
    device.kind("%f = fusion()", "fusion.1")
    device.line(2, "XLA Ops").extend(
        [
            device.event("%w = while()", 2 * US, 20 * US),
            device.event("%f = fusion()", 3 * US, 6 * US),
            device.event("%f = fusion()", 7 * US, 9 * US),
            device.event(
                '%c = f32[] custom-call(), custom_call_target="tpu_custom_call"', 21 * US, 25 * US
            ),
            device.event('%k = f32[] custom-call(), custom_call_target="mine"', 26 * US, 27 * US),
        ]
    )
    device.line(3, "Async XLA Ops").append(device.event("copy-start", 2 * US, 25 * US))
    session = imported(
        space(metadata({7: [Call("c.1", "tpu_custom_call", "jit(f)/attention")]}), host, device)
    )
    assert [one[:4] for one in told(session)[1:]] == [
        ("jit_f(7)", "range", 2000, 30000),
        ("while.1", "range", 2000, 20000),
        ("fusion.1", "device", 3000, 6000),
        ("fusion.1", "device", 7000, 9000),
        ("jit(f)/attention", "call", 21000, 25000),
        ("mine", "call", 26000, 27000),
        ("copy-start", "range", 2000, 25000),
    ]
    work = session.spans[session.spans["kind"] == Kind.DEVICE]
    assert work["submitted_ns"].tolist() == [0, 0]
    assert len(session.links) == 2
    assert not findings(session)


def test_planes_of_unknown_kinds_are_kept_as_annotations() -> None:
    plane = Plane("Host CPUs")
    plane.line(0, "cpu 0").append(plane.event("sched_switch", 0, US))
    session = imported(space(plane))
    assert told(session) == [("sched_switch", "range", 0, 1000, "")]
    assert [lane.name for lane in session.lanes] == ["Host CPUs cpu 0"]
    assert findings(session) == {"events on planes of an unknown kind (kept as annotations)": 1}


def test_oddities_are_counted() -> None:
    plane = Plane("/host:CPU")
    line = plane.line(1, "python")
    line += [
        plane.event("a::b", 9 * US, 5 * US),
        whole(1, plane.kind("sum")) + whole(5, 12),
        whole(1, 777) + whole(2, 0) + whole(3, US),
        whole(1, plane.kind("a::b")) + whole(2, 2**62) + whole(3, 1),
    ]
    session = imported(space(plane))
    assert len(session.spans) == 3
    assert (session.spans["end_ns"] >= session.spans["start_ns"]).all()
    assert findings(session) == {
        "events whose name the file does not hold": 1,
        "events that end before they begin (taken to end at once)": 1,
        "events at impossible times (moved)": 1,
        "sums over many events, which have no time of their own (left out)": 1,
    }


def test_unknown_fields_are_skipped() -> None:
    plane = Plane("/host:CPU")
    event = (
        plane.event("DevicePut", 0, US)
        + whole(99, 5)
        + block(98, b"x")
        + varint(97 << 3 | 5)
        + b"1234"
    )
    plane.line(1, "python").append(event)
    session = imported(block(77, b"later") + space(plane))
    assert told(session) == [("DevicePut", "op", 0, 1000, "")]
    assert not session.processes[0].damage


def planes() -> list[Plane]:
    """Some of everything."""
    plane = Plane("/host:CPU", {"process_id": 5})
    for number in range(2):
        plane.line(number, "python", 5).extend(
            thunk(plane, "pure_callback.1", 3 * at * US, (3 * at + 2) * US, 7) for at in range(20)
        )
    call = Call("pure_callback.1", CPU_CALLBACK, "jit(f)/pure_callback", 3)
    return [metadata({7: [call]}), plane]


def test_every_cut_gives_the_whole_events_before_it_and_says_so() -> None:
    first, second = planes()
    data = space(first, second)
    times = {one[2:4] for one in told(imported(data))}
    whole_planes = len(space(first))
    found = []
    for size in sorted({*range(0, len(data), 7), whole_planes}):
        session = imported(data[:size])
        assert {one[2:4] for one in told(session)} <= times
        assert bool(session.processes[0].damage) == (size != whole_planes), size
        found.append(len(session.spans))
    assert found == sorted(found)
    assert found[-1] == 40


def test_bytes_that_changed_never_raise() -> None:
    data = space(*planes(), host="vm")
    chance = random.Random(5)
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 4, 30))):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        spans = imported(bytes(damaged)).spans
        assert (spans["end_ns"] >= spans["start_ns"]).all()


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 40, b"\x0a", b"not a trace at all"])
def test_what_is_no_trace_is_an_empty_session_that_says_so(data: bytes) -> None:
    session = imported(data)
    assert not len(session.spans)
    assert session.processes[0].damage
