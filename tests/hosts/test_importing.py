"""Attaching a host when its framework is imported, which looks as if nobody had been there."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.hosts.late import Late

from opscope.profiler import profile
from opscope.record import Recorder
from opscope.testing import assert_restored


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
