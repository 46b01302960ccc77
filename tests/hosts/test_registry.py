"""Finding hosts, and attaching them: at once, or when their framework is imported."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opscope import HostError, custom_op
from opscope.hosts import available, chosen, probe_all, registry
from opscope.model import Sight
from opscope.profiler import profile
from opscope.record import Recorder
from opscope.testing import FakeHost, assert_restored

number = itertools.count().__next__


class Late:
    """A host that waits for a module, and writes down what happens to it."""

    def __init__(self, module: str | None, log: list[str], name: str = "late") -> None:
        self.name = name
        self.module = module
        self.log = log

    def probe(self) -> Sight:
        return Sight(self.name, "1", ("calls",))

    @contextmanager
    def attach(self, recorder: Recorder) -> Iterator[None]:
        module = sys.modules.get(self.module or "", None)
        self.log.append(f"attached, value {getattr(module, 'VALUE', None)}")
        yield
        self.log.append("detached")


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


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that can be imported and has not been."""
    name = f"fake_framework_{number()}"
    (tmp_path / f"{name}.py").write_text("VALUE = 7\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes these the hosts there are."""

    def offer(*hosts: object) -> None:
        monkeypatch.setattr(registry, "_OURS", [lambda host=host: host for host in hosts])

    return offer


def test_attached_when_the_module_is_imported(module: str, offer: Callable[..., None]) -> None:
    log: list[str] = []
    offer(Late(module, log), Late(module, log, "second"))
    with assert_restored(), profile() as run:
        assert log == []
        assert run.session.sight == ()
        importlib.import_module(module)
        assert log == ["attached, value 7"] * 2
        importlib.import_module(module)
    assert log == ["attached, value 7"] * 2 + ["detached"] * 2
    assert [sight.host for sight in run.session.sight] == ["late", "second"]


def test_attached_at_once_where_it_is_imported_already(
    module: str, offer: Callable[..., None]
) -> None:
    log: list[str] = []
    importlib.import_module(module)
    offer(Late(module, log), Late(None, log, "second"))
    with assert_restored(), profile():
        assert log == ["attached, value 7", "attached, value None"]
        assert not [f for f in sys.meta_path if type(f).__module__.startswith("opscope")]


def test_never_imported_never_attached(module: str, offer: Callable[..., None]) -> None:
    log: list[str] = []
    offer(Late(module, log))
    with assert_restored(), profile():
        assert importlib.util.find_spec(module) is not None
    importlib.import_module(module)
    assert log == []


def test_a_module_that_was_forbidden_is_not_there(
    module: str, offer: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type]
    offer(Late(module, log))
    with assert_restored(), profile(), pytest.raises(ImportError):
        importlib.import_module(module)
    assert log == []


def test_the_module_looks_untouched(module: str, offer: Callable[..., None]) -> None:
    def looks() -> tuple[object, ...]:
        found = importlib.import_module(module)
        spec = found.__spec__
        assert spec is not None
        assert spec.loader is found.__loader__
        assert not {"_initializing"} & set(vars(found))
        return type(spec), type(spec.loader), vars(spec.loader), spec.origin, sorted(vars(found))

    before = looks()
    del sys.modules[module]
    offer(Late(module, []))
    with assert_restored(), profile():
        assert looks() == before
        assert importlib.reload(sys.modules[module]).VALUE == 7
        assert looks() == before


def test_a_spec_that_is_only_looked_at_can_be_used(module: str, offer: Callable[..., None]) -> None:
    log: list[str] = []
    offer(Late(module, log))
    with assert_restored(), profile():
        spec = importlib.util.find_spec(module)
        assert spec is not None
        assert spec.loader is not None
        assert spec.loader.get_source(module) == "VALUE = 7\n"  # type: ignore[attr-defined]
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.VALUE == 7
    assert made.__spec__ is spec
    assert type(spec.loader).__name__ == "SourceFileLoader"
    assert log == []


def test_an_import_that_fails_and_is_tried_again(
    module: str, tmp_path: Path, offer: Callable[..., None]
) -> None:
    log: list[str] = []
    offer(Late(module, log))
    file = tmp_path / f"{module}.py"
    good = file.read_text("utf-8")
    file.write_text("raise OSError('not now, please')", "utf-8")
    with assert_restored(), profile():
        with pytest.raises(OSError, match="not now"):
            importlib.import_module(module)
        assert log == []
        file.write_text(good, "utf-8")
        importlib.invalidate_caches()
        importlib.import_module(module)
        assert log == ["attached, value 7"]


def test_imported_on_another_thread(module: str, offer: Callable[..., None]) -> None:
    log: list[str] = []
    offer(Late(module, log))
    with assert_restored(), profile():
        thread = threading.Thread(target=importlib.import_module, args=(module,))
        thread.start()
        thread.join()
        assert log == ["attached, value 7"]
    assert log[-1] == "detached"


def test_attached_while_the_recording_ends_is_let_go(
    module: str, offer: Callable[..., None]
) -> None:
    log: list[str] = []

    class Slow(Late):
        @contextmanager
        def attach(self, recorder: Recorder) -> Iterator[None]:
            run.stop()  # as another thread might, just now
            with super().attach(recorder):
                yield

    offer(Slow(module, log))
    with assert_restored(), profile() as run:
        importlib.import_module(module)
    assert log == ["attached, value 7", "detached"]


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
