"""What every host owes: hooks that go away, sound spans, an honest probe, faults kept to itself."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.hosts.checks import check

from opscope import custom_op
from opscope.hosts import Host, available, registry
from opscope.model import Kind, Phase, Session
from opscope.profiler import profile
from opscope.record import Recorder
from opscope.record.tables import Tables
from opscope.testing import FakeHost, FakeSpan, assert_restored

pytestmark = pytest.mark.usefixtures("recorder_kind")

FAKE = FakeHost(
    [
        FakeSpan(Kind.CALL, "call", 10, 90, phase=Phase.FORWARD),
        FakeSpan(Kind.OP, "op", 20, 40, owner=0),
        FakeSpan(Kind.OP, "far", 30, 60, owner=0, lane="other", submitted_ns=15),
        FakeSpan(Kind.RUNTIME, "chore", 50, 60),
    ]
)


def drive_python() -> object:
    @custom_op
    def outer(depth: int) -> int:
        with custom_op("block"):
            threading.Event().wait(0)
        return 1 + (outer(depth - 1) if depth else 0)

    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(outer(1)))
    thread.start()
    thread.join()
    return outer(2), found, list(custom_op(lambda: (yield 1))())


def drive_engine() -> object:
    from opscope import engine as nd

    class Twice(nd.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            in_data[0].asnumpy()
            self.assign(out_data[0], req[0], in_data[0] * 2.0)

        def backward(self, req: Any, out_grad: Any, *rest: Any) -> None:
            self.assign(rest[2][0], req[0], out_grad[0] * 2.0)

    class TwiceProp(nd.CustomOpProp):
        def create_operator(self, *args: Any) -> Twice:
            return Twice()

    nd.register("contract.Twice")(TwiceProp)
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with nd.autograd.record():
        y = nd.custom(x, op_type="contract.Twice")
    y.backward()
    answer = y.asnumpy().tolist(), x.grad.asnumpy().tolist()
    nd.waitall()
    return answer


def drive_torch() -> object:
    import torch
    from tests.hosts.torch.contract import Twice, twice

    x = torch.ones(3, requires_grad=True)
    with torch.autograd.profiler.record_function("range"):
        y = Twice.apply(twice(x))
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


#: What makes a host show all it can. Hosts that are not named here are attached all the same.
DRIVES: dict[str, Callable[[], object]] = {
    "python": drive_python,
    "engine": drive_engine,
    "torch": drive_torch,
    "fake": lambda: None,
}
ANSWERS: dict[str, object] = {
    "python": (3, [2], [1]),
    "engine": ([2.0, 4.0], [2.0, 2.0]),
    "torch": ([4.0] * 3, [4.0] * 3),
    "fake": None,
}
#: Seen in every recording, whoever is attached: hand-over and waits are the recorder's own.
ALWAYS = {Kind.TASK, Kind.WAIT, Kind.STEP}
WORDS = {
    Kind.CALL: "calls",
    Kind.OP: "sub-operators",
    Kind.DISPATCH: "dispatch",
    Kind.RUNTIME: "runtime",
    Kind.DEVICE: "device",
    Kind.RANGE: "ranges",
}


@pytest.fixture(params=[*(host.name for host in available()), "fake"])
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(registry, "_OURS", (*registry._OURS, lambda: FAKE))
    (found,) = [host for host in available() if host.name == request.param]
    if found.module is not None:
        pytest.importorskip(found.module)
    return found


def recorded(host: Host) -> Session:
    with assert_restored(), profile(host=host.name) as run:
        answer = DRIVES.get(host.name, lambda: None)()
    assert answer == ANSWERS.get(host.name)
    return run.session


def test_it_is_a_host_and_says_what_it_sees(host: Host) -> None:
    assert isinstance(host, Host)
    sight = host.probe()
    assert sight.host == host.name
    assert sight.sees
    assert not set(sight.sees) & set(sight.misses)
    assert all(isinstance(reason, str) and reason for reason in sight.misses.values())


def test_nothing_stays_hooked_after_an_exception(host: Host) -> None:
    def fails() -> None:
        with profile(host=host.name):
            DRIVES.get(host.name, lambda: None)()
            raise KeyError("mine")

    with assert_restored(), pytest.raises(KeyError, match="mine"):
        fails()


def test_its_spans_are_sound(host: Host) -> None:
    session = recorded(host)
    check(session)
    assert session.processes[0].broken == ()
    assert [sight.host for sight in session.sight] == [host.name]
    if host.name in DRIVES:
        assert (session.spans["kind"] == Kind.CALL).any()
        assert {op.host for op in session.ops} == {host.name}


def test_what_it_does_not_see_never_appears(host: Host) -> None:
    spans = recorded(host).spans
    sees = set(host.probe().sees)
    kinds = {Kind(kind) for kind in spans["kind"].tolist()} - ALWAYS
    assert {WORDS[kind] for kind in kinds} <= sees
    if "backward" not in sees:
        assert not (spans["phase"] == Phase.BACKWARD).any()
    if host.name in ("python", "engine", "torch"):  # and what these claim does
        assert {word for word in sees if word in WORDS.values()} <= {WORDS[k] for k in kinds}


def test_two_recordings_in_a_row_show_the_same(host: Host) -> None:
    first, second = recorded(host), recorded(host)

    def counted(session: Session) -> Counter[tuple[int, int, str]]:
        kept = [row for row in session.spans if row["kind"] not in (Kind.WAIT, Kind.RUNTIME)]
        return Counter((row["kind"], row["phase"], session.names[row["name"]]) for row in kept)

    assert counted(first) == counted(second)


HOOKS = {
    "begin": (Recorder, "begin"),
    "end": (Recorder, "end"),
    "put": (Recorder, "put"),
    "here": (Recorder, "here"),
    "cpu": (Recorder, "cpu"),
    "name": (Tables, "name"),
    "op": (Tables, "op"),
    "add": (Recorder, "add"),
}


@pytest.mark.parametrize("hook", HOOKS)
def test_a_fault_never_reaches_the_program(
    host: Host, hook: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def broken(*args: object, **kwargs: object) -> None:
        told.append(threading.current_thread().name)
        raise OSError("a fault of ours")

    monkeypatch.setattr(*HOOKS[hook], broken)
    with caplog.at_level(logging.WARNING, "opscope"):
        session = recorded(host)
    faults = session.processes[0].broken
    assert bool(faults) == bool(told)
    assert all("a fault of ours" in fault for fault in faults)
    assert len(set(faults)) == len(faults)
    shown = [r.getMessage() for r in caplog.records if "switched off" in r.getMessage()]
    assert len(shown) == len(faults)
    assert len(set(shown)) == len(shown)
    check(session)


PROBE = """
import json, sys
from opscope.hosts import available
hosts = available()
before = set(sys.modules)
for host in hosts:
    host.probe()
new = sorted(set(sys.modules) - before)
print(json.dumps([new, [host.module for host in hosts if host.module in sys.modules]]))
"""


def test_probing_imports_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=True)
    assert json.loads(done.stdout) == [[], []]
