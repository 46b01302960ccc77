"""Whether torch only traces a program now: what runs then is no call of anybody's."""

from __future__ import annotations

import sys
from typing import Any


def tracing() -> bool:
    """True while tensors are stand-ins (fake, functional or proxy): a compiler is looking."""
    c: Any = sys.modules["torch"]._C
    if not c._len_torch_dispatch_stack():
        return False
    return any(c._get_dispatch_mode(key) is not None for key in _keys(c))


def _keys(c: Any) -> list[Any]:
    kinds = c._TorchDispatchModeKey
    names = ("FAKE", "PROXY", "FUNCTIONAL")
    return [getattr(kinds, name) for name in names if hasattr(kinds, name)]
