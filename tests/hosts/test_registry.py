"""Finding hosts, and those among them that fail."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.hosts.late import Late, number

from opscope import HostError, custom_op
from opscope.hosts import available, chosen, probe_all
from opscope.model import Sight
from opscope.profiler import profile
from opscope.record import Recorder
from opscope.testing import FakeHost, assert_restored


class Bad(Late):
    @contextmanager
    def attach(self, recorder: Recorder) -> Iterator[None]:
        raise OSError("cannot attach")
        yield


class BadExit(Late):
    @contextmanager
    def attach(self, recorder: Recorder) -> Iterator[None]:
        yield
        raise OSError("cannot let go")


class BadProbe(Late):
    def probe(self) -> Sight:
        raise OSError("cannot look")


@pytest.mark.parametrize(("host", "said"), [(Bad, "cannot attach"), (BadExit, "cannot let go")])
def test_a_host_that_fails_is_named_and_left_out(
    host: type[Late],
    said: str,
    module: str,
    offer: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[str] = []
    offer(host(module, log, "bad"), Late(module, log), host(None, log, "bad too"))
    with assert_restored(), profile() as run:
        importlib.import_module(module)
    assert log == ["attached, value 7", "detached"]
    broken = run.session.processes[0].broken
    assert set(broken) == {f"host {name}: OSError: {said}" for name in ("bad", "bad too")}
    assert len([r for r in caplog.records if "switched off" in r.getMessage()]) == 2


def test_a_host_that_cannot_be_probed(offer: Callable[..., None]) -> None:
    log: list[str] = []
    offer(BadProbe(None, log))
    with assert_restored(), profile() as run:
        pass
    assert log == ["attached, value None", "detached"]
    (sight,) = run.session.sight
    assert sight == probe_all()[0]
    assert sight.sees == ()
    assert "cannot look" in sight.misses["everything"]


def test_what_is_no_exception_passes(offer: Callable[..., None]) -> None:
    class Interrupted(Late):
        def attach(self, recorder: Recorder) -> None:  # type: ignore[override]
            raise KeyboardInterrupt

    log: list[str] = []
    offer(Late(None, log), Interrupted(None, log, "interrupted"))
    with assert_restored(), pytest.raises(KeyboardInterrupt):
        profile().start()
    assert log == ["attached, value None", "detached"]


def test_choosing() -> None:
    names = [host.name for host in available()]
    assert names[:2] == ["engine", "python"]
    assert [host.name for host in chosen()] == names
    assert [host.name for host in chosen(["auto"])] == names
    assert [host.name for host in chosen("python")] == ["python"]
    assert [host.name for host in chosen(["python", "engine", "python"])] == ["python", "engine"]


@pytest.mark.parametrize("name", ["nothing", "", ["python", "nothing"], ("Python",)])
def test_an_unknown_host(name: str | list[str]) -> None:
    with pytest.raises(HostError, match=r"no host is called .*; there are: auto, engine, python"):
        chosen(name)
    with assert_restored(), pytest.raises(HostError):
        profile(host=name).start()


def test_only_the_hosts_that_were_chosen_record() -> None:
    with assert_restored(), profile(host="engine") as run:
        assert custom_op("unseen")(lambda: 3)() == 3
        with custom_op("unseen"):
            pass
        assert list(custom_op("unseen")(lambda: (yield 1))()) == [1]
    assert len(run.session.spans) == 0
    assert run.session.processes[0].broken == ()


def install(folder: Path, points: dict[str, str], code: str) -> None:
    """Write a package with these entry points, as pip would leave it."""
    name = f"third_party_{number()}"
    (folder / f"{name}.py").write_text(code, "utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    lines = [f"{point} = {name}:{target}" for point, target in points.items()]
    (info / "entry_points.txt").write_text("[opscope.hosts]\n" + "\n".join(lines) + "\n", "utf-8")


def test_third_parties_offer_hosts_by_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    code = """
from opscope.testing import FakeHost
class Mine(FakeHost):
    def __init__(self):
        super().__init__(name="mine")
def make():
    return FakeHost(name="made")
def fails():
    raise OSError("fails to load")
def again():
    return FakeHost(name="python")
text = str
"""
    points = {"a": "Mine", "b": "make", "c": "fails", "d": "again", "e": "absent", "f": "text"}
    install(tmp_path, points, code)
    monkeypatch.syspath_prepend(tmp_path)
    with caplog.at_level(logging.WARNING, "opscope"):
        names = [host.name for host in available()]
    assert names[-2:] == ["mine", "made"]
    assert names.count("python") == 1
    said = {r.getMessage().split()[1]: r.getMessage() for r in caplog.records}
    assert said.keys() == {"c", "d", "e", "f"}
    assert "fails to load" in said["c"]
    assert "'python' already" in said["d"]
    assert "is not a host" in said["f"]
    with assert_restored(), profile(host="mine") as run:
        pass
    assert [sight.host for sight in run.session.sight] == ["mine"]
    assert isinstance(chosen("made")[0], FakeHost)
