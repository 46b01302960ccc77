"""A fault in a hook of ours is noted and never reaches the program."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import opscope  # noqa: E402
from opscope.hosts.torch.functions import Functions  # noqa: E402


@pytest.mark.parametrize("hook", ["_began", "_ended", "forward_phase", "_await"])
def test_the_program_goes_on(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.hosts.torch.contract import Twice, twice

    def broken(*args: Any) -> None:
        raise OSError("a fault of ours")

    monkeypatch.setattr(Functions, hook, broken)
    x = torch.ones(3, requires_grad=True)
    with opscope.profile(host="torch") as run:
        y = Twice.apply(twice(x))
        y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([4.0] * 3, [4.0] * 3)
    assert any("a fault of ours" in fault for fault in run.session.processes[0].broken)
