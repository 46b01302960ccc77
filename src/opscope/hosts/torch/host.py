"""`TorchHost`: puts the hooks and the collection of one recording together."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from opscope.hosts.torch.operators import HOST
from opscope.model import Sight
from opscope.record import Recorder


class TorchHost:
    """Custom operators of PyTorch: torch.library's, C++ ones, autograd.Functions."""

    name = HOST
    module: str | None = HOST

    def __init__(self) -> None:
        self._mode = "full"
        self._all_threads = True

    def probe(self) -> Sight:
        """See `Host.probe`. Before a recording it tells of the full mode."""
        found = _version()
        if not found:
            return Sight(HOST, misses={"everything": "PyTorch is not installed"})
        sees = ["calls", "dispatch", "waits", "cpu", "threads", "backward"]
        misses = {
            "compiled backward": "torch.compile (aot_eager, inductor) merges backward formulas and "
            "runs autograd.Functions without calling them: what part they had cannot be told",
            "unhooked functions": "operators registered with torch.library.impl or in C++ have no "
            "CPU time: what they did not launch is untracked, or native",
        }
        if self._mode == "light":
            misses["sub-operators"] = "light mode records calls, waits and tasks only"
            misses["dispatch of custom_op and backward"] = (
                "light mode sees their functions only, and not torch's wrapper around them"
            )
        else:
            sees += ["sub-operators", "ranges"]
            if not self._all_threads:
                misses["operators of other threads"] = (
                    f"torch {found} cannot profile threads that it did not start the profiler on "
                    "(2.7 and later can): their tasks are seen, the operators inside are not"
                )
        if _has_device():
            sees.append("device")
        return Sight(HOST, found, tuple(sees), misses)

    @contextmanager
    def attach(self, recorder: Recorder) -> Iterator[None]:
        """See `Host.attach`."""
        from opscope.hosts.torch.calls import Calls
        from opscope.hosts.torch.custom import CustomOps
        from opscope.hosts.torch.delivery import Delivery
        from opscope.hosts.torch.early import Early
        from opscope.hosts.torch.functions import Functions
        from opscope.hosts.torch.operators import existing
        from opscope.hosts.torch.rival import Rivals
        from opscope.hosts.torch.windows import Windows

        self._mode = recorder.mode
        operators = existing()
        calls = Calls(recorder)
        functions = Functions(calls, operators)
        pid = os.getpid()
        with ExitStack() as stack:
            if recorder.mode != "light":
                windows = Windows(recorder, Delivery(recorder, operators, functions))
                self._all_threads = windows.kineto.all_threads
                stack.enter_context(Rivals(windows).yielded_to())
                # Last out, so that hooks are gone when the events are delivered.
                stack.enter_context(windows.collecting())
                stack.push(lambda *_: windows.drop() if os.getpid() != pid else None)
            stack.enter_context(functions.hooked())
            stack.enter_context(CustomOps(calls, operators, functions).hooked())
            stack.enter_context(Early(recorder, operators).watched())
            yield


def _version() -> str:
    """Of the torch that is imported, or would be; empty without one."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return str(getattr(torch, "__version__", "?"))
    try:
        spec = find_spec("torch")
        if spec is None or spec.origin is None:
            return ""
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except (ImportError, OSError, ValueError):
        return ""
    found = re.search(r"__version__ = ['\"](.+?)['\"]", text)
    return found.group(1) if found else "?"


def _has_device() -> bool:
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    try:
        return bool(cuda is not None and cuda.is_initialized())
    except Exception:
        return False
