"""Operators that fail, or that a thread is held in, and programs in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hosts.torch.ops import custom, differentiable, fresh, library, negative, own, rows, torch

from opscope.analyse import CallRow


class Boom(Exception):
    """What the operators here raise."""


def function(forward: Callable[[Any], Any], backward: Callable[[Any], Any] = negative) -> Any:
    body = {
        "__module__": __name__,
        "forward": staticmethod(own(lambda ctx, x: forward(x))),
        "backward": staticmethod(own(lambda ctx, slope: backward(slope))),
    }
    return type(fresh("Edge").replace(":", "_"), (torch.autograd.Function,), body)


def made(kind: str, forward: Any, backward: Any = negative) -> tuple[Any, str]:
    """An operator of that kind, and its name."""
    if kind == "function":
        cls = function(forward, backward)
        return cls.apply, cls.__name__
    if kind == "library":
        op = library("edge", forward, key="CPU")
    elif kind == "custom_op":
        op = custom("edge", own(lambda x: forward(x)))
    else:
        op = differentiable("edge", own(lambda x: forward(x)), own(lambda slope: backward(slope)))
    return op, op._qualname


class Gate:
    """Holds a thread inside an operator until it is told to go on."""

    def __init__(self) -> None:
        self.inside, self.go = threading.Event(), threading.Event()

    def __call__(self, x: Any) -> Any:
        torch.exp(x)
        self.inside.set()
        assert self.go.wait(30)
        return torch.neg(x)


def on_thread(op: Any, *, backward: bool = False) -> threading.Thread:
    x = torch.ones(3, requires_grad=True)
    made = op(x).sum() if backward else None
    thread = threading.Thread(target=made.backward if made is not None else lambda: op(x))
    thread.start()
    return thread


HELD = ("custom_op", "differentiable", "function", "backward", "function backward")


def held(how: str) -> tuple[Gate, threading.Thread, str, str]:
    """A thread inside an operator: gate, thread, the operator's name and the phase it is in."""
    gate = Gate()
    back = how.endswith("backward")
    kind = {"backward": "differentiable", "function backward": "function"}.get(how, how)
    op, name = made(kind, negative, gate) if back else made(kind, gate)
    thread = on_thread(op, backward=back)
    assert gate.inside.wait(30)
    return gate, thread, name, "backward" if back else "forward"


def only(session: Any, name: Any, phase: str) -> CallRow:
    found = rows(session, name)
    assert len(found) == 1
    row = found[0]
    assert row.phase == phase
    assert row.parent is None
    return row


def script(tmp_path: Path, text: str, *args: Any) -> None:
    """Runs a program in a process of its own, which has to end well and in silence."""
    file = tmp_path / "script.py"
    file.write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, file, *args], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
