"""`explain`: what a framework's own profiler has collected for somebody, as a session."""

from __future__ import annotations

from typing import Any

from opscope.errors import UsageError
from opscope.model import Session


def explain(profiled: Any) -> Session:
    """The session of a finished profile. Raises UsageError for what is none."""
    module = type(profiled).__module__ or ""
    if module.startswith(("torch.profiler", "torch.autograd.profiler")):
        from opscope.hosts.torch.explain import explain as of_torch

        return of_torch(profiled)
    raise UsageError(
        f"explain takes a finished torch.profiler.profile, not {type(profiled).__qualname__}"
    )
