"""The C extension, where it was built and may be used; nothing here depends on it."""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from types import ModuleType

#: Which face of the extension the Python half knows: both count up when the other must follow.
FACE = 3

#: Which recorder to use: "python" or "native". Unset: native where it is there.
VARIABLE = "OPSCOPE_RECORDER"


def wanted() -> str:
    """What the environment asks for; empty: whatever there is."""
    return os.environ.get(VARIABLE, "").strip().lower()


def _load() -> tuple[ModuleType | None, str]:
    """The module, or None and why it is not used."""
    if wanted() == "python":
        return None, f"{VARIABLE}=python was set when opscope was imported"
    if sys.implementation.name != "cpython":
        return None, f"it is made for CPython, and this is {sys.implementation.name}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None, "it relies on the GIL, and this is a free-threaded build of Python"
    try:
        import opscope.record._native as _native  # `from` would hide that it is not there
    except ModuleNotFoundError:
        return None, "it was not built: no C compiler when opscope was installed, or OPSCOPE_PURE=1"
    except ImportError as error:  # another Python's, or not in this interpreter
        return None, f"it cannot be loaded: {error}"
    if getattr(_native, "FACE", 0) != FACE:
        return None, "it was built from other sources than these: install opscope again"
    before = time.perf_counter_ns()
    now = _native.now()
    if not before <= now <= time.perf_counter_ns():
        return None, "its clock is not the one Python takes"
    return _native, ""


#: The extension or None, and why it is None.
native, missing = _load()
