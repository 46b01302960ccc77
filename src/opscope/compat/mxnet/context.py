"""Where arrays live: on the CPU. Other contexts can be named, and say so when they are used."""

from __future__ import annotations

import threading
from typing import Any

from opscope.compat.mxnet.absent import lacks
from opscope.compat.mxnet.base import MXNetError

__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "num_gpus"]

__getattr__ = lacks("mx.context", lambda: __all__)

_KINDS = ("cpu", "gpu", "cpu_pinned", "cpu_shared")


class Context:
    """A device by type and number; as a `with` block, where this thread makes arrays."""

    def __init__(self, device_type: Any, device_id: int = 0) -> None:
        """`device_type` may be another context. ValueError for an unknown type."""
        if isinstance(device_type, str):
            if device_type not in _KINDS:
                raise ValueError(f"a context is one of {', '.join(_KINDS)}, not {device_type!r}")
            self.device_type, self.device_id = device_type, int(device_id)
        else:
            self.device_type, self.device_id = device_type.device_type, device_type.device_id
        self._outer: list[Context] = []

    def __eq__(self, other: object) -> bool:
        try:
            theirs = other.device_type, other.device_id  # type: ignore[attr-defined]
        except AttributeError:
            return NotImplemented
        return (self.device_type, self.device_id) == theirs

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __enter__(self) -> Context:
        self._outer.append(_here.context)
        _here.context = self
        return self

    def __exit__(self, *_: object) -> None:
        _here.context = self._outer.pop()


class _Here(threading.local):
    context = Context("cpu")


_here = _Here()


def cpu(device_id: int = 0) -> Context:
    """The CPU; all numbers mean the same one."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """The CPU as well."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """A GPU: there is none, and using it raises MXNetError."""
    return Context("gpu", device_id)


def num_gpus() -> int:
    """0."""
    return 0


def current_context() -> Context:
    """Where this thread makes arrays."""
    return _here.context


def checked(ctx: Any) -> None:
    """MXNetError where arrays cannot live; `ctx` may be None, a context or text as `cpu(0)`."""
    found = _here.context if ctx is None else ctx
    kind = found.partition("(")[0] if isinstance(found, str) else found.device_type
    if kind == "gpu":
        raise MXNetError(
            f"there is no {found}: opscope's engine runs on the CPU only, use mx.cpu()"
        )
