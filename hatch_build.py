"""Builds the C extension `opscope.record._native`, or a wheel without it, and says which.

It never fails an installation: without a compiler or Python's headers, or with OPSCOPE_PURE=1, the
package is pure Python and works all the same, with a slower recorder.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "opscope/record"


class NativeRecorder(BuildHookInterface):
    """Asked before a wheel is put together; an editable install is one too."""

    _scratch: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build into `src/` for an editable install, else straight into the wheel."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        editable = version == "editable"
        if editable:
            for stale in (root / "src" / PLACE).glob(f"_native{_suffix()}"):
                stale.unlink()
        why = _why_not()
        if not why:
            if editable:
                into = root / "src" / PLACE
            else:
                into = self._scratch = Path(tempfile.mkdtemp(prefix="opscope-"))
            try:
                built = build(root, into)
            except (Exception, SystemExit) as error:
                why = f"{type(error).__name__}: {error}".strip()
            else:
                build_data["pure_python"] = False
                build_data["infer_tag"] = True
                if not editable:
                    build_data["force_include"][str(built)] = f"{PLACE}/{built.name}"
        if why:
            self.app.display_warning(
                f"opscope is built without its C extension, so it records more slowly: {why}"
            )

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """What was built is in the wheel now."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _suffix() -> str:
    return str(sysconfig.get_config_var("EXT_SUFFIX"))


def _why_not() -> str:
    """Why the extension must not even be tried; empty when it may."""
    if os.environ.get("OPSCOPE_PURE", "").lower() not in ("", "0", "false", "no", "off"):
        return "OPSCOPE_PURE is set"
    if platform.python_implementation() != "CPython":
        return f"it is made for CPython, not {platform.python_implementation()}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "it relies on the GIL, and this is a free-threaded build of Python"
    if sys.platform not in ("linux", "darwin"):
        return f"it is made for Linux and macOS, not {sys.platform}"
    return ""


def build(root: Path, into: Path, flags: tuple[str, ...] = ()) -> Path:
    """Compile it to `into`; returns the file. Raises whatever setuptools raises."""
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    folder = root / "src" / PLACE / "native"
    extension = Extension(
        "_native",
        sources=sorted(str(source) for source in folder.glob("*.c")),
        depends=[str(folder / "native.h")],
        include_dirs=[str(folder)],
        extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-D_GNU_SOURCE", *flags],
        extra_link_args=[*flags],
    )
    with tempfile.TemporaryDirectory(prefix="opscope-") as scratch:
        command = build_ext(Distribution({"name": "opscope", "ext_modules": [extension]}))
        command.build_temp = scratch
        command.build_lib = str(into)
        command.ensure_finalized()
        command.run()
        (made,) = command.get_outputs()
    return Path(made)
