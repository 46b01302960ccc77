"""Which recorder is used, why, and that `make test` has the C one wherever it can be built."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from opscope import profile
from opscope.errors import UsageError
from opscope.record import Recorder, extension, in_use, recorder_class
from opscope.store import MemorySink

native: Any = extension.native


def test_make_test_has_it_built_where_that_can_be() -> None:
    if os.environ.get("OPSCOPE_PURE"):
        pytest.skip("OPSCOPE_PURE is set")
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None or not header.is_file() or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("no C compiler, no headers of Python, or no GIL")
    assert native is not None, extension.missing


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extension.VARIABLE, "python")
    assert recorder_class() is Recorder
    assert type(Recorder(MemorySink())) is Recorder
    assert in_use() == ("python", "OPSCOPE_RECORDER=python")
    monkeypatch.setenv(extension.VARIABLE, "rust")
    with pytest.raises(UsageError, match="OPSCOPE_RECORDER=rust: there is no such recorder"):
        profile().start()
    monkeypatch.setenv(extension.VARIABLE, "native")
    if native is None:
        with pytest.raises(UsageError, match="there is no native recorder here"):
            profile().start()
    else:
        assert issubclass(recorder_class(), native.Core)
        assert in_use()[0] == "native"
    monkeypatch.delenv(extension.VARIABLE)
    assert in_use()[0] == ("python" if native is None else "native")


def test_why_it_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(extension.VARIABLE, raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(sysconfig, "get_config_var", lambda name: name == "Py_GIL_DISABLED")
        found, why = extension._load()
        assert found is None
        assert "free-threaded" in why
    with monkeypatch.context() as patch:
        patch.setattr(sys.implementation, "name", "pypy")
        assert extension._load() == (None, "it is made for CPython, and this is pypy")
    with monkeypatch.context() as patch:
        patch.setenv(extension.VARIABLE, "python")
        found, why = extension._load()
        assert found is None
        assert "OPSCOPE_RECORDER=python" in why
    if native is not None:
        with monkeypatch.context() as patch:
            patch.setattr(extension.time, "perf_counter_ns", lambda: 5)
            assert extension._load() == (None, "its clock is not the one Python takes")
        with monkeypatch.context() as patch:
            patch.setattr(extension, "FACE", native.FACE + 1)
            found, why = extension._load()
            assert found is None
            assert "install opscope again" in why
        assert extension._load() == (native, "")


def test_asked_for_and_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys\n"
        "class Hides:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'opscope.record._native':\n"
        "            raise ModuleNotFoundError('hidden', name=name)\n"
        "sys.meta_path.insert(0, Hides())\n"
        "import opscope\n"
        "try: opscope.profile().start()\n"
        "except opscope.UsageError as error: print(error, error.exit_code)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {extension.VARIABLE: "native"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "there is no native recorder here: it was not built" in told
    assert told.strip().endswith(" 2")
