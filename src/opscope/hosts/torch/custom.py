"""Hooks around the functions of `torch.library.custom_op` and `triton_op`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from opscope.hosts.torch.calls import Calls
from opscope.hosts.torch.functions import Functions
from opscope.hosts.torch.modes import tracing
from opscope.hosts.torch.operators import HOST, Operators, Watched, definitions, is_torchs_own
from opscope.record import scope, watch
from opscope.record.patch import patched


class CustomOps:
    """Replaces the functions in `CustomOpDef._backend_fns`, which torch looks up at every call."""

    def __init__(self, calls: Calls, operators: Operators, functions: Functions) -> None:
        self.calls = calls
        self.operators = operators
        self.functions = functions
        self._replaced: list[tuple[dict[Any, Any], Any, Any, Any]] = []

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Inside the block the calls of all of them are recorded, later ones too."""
        module = sys.modules["torch._library.custom_ops"]
        with patched(module.CustomOpDef, "register_kernel", self._register_kernel):
            try:
                for definition in definitions():
                    self.hook(definition)
                yield
            finally:
                for functions, key, original, ours in self._replaced:
                    if functions.get(key) is ours:
                        functions[key] = original

    def hook(self, definition: Any) -> None:
        """Hook the functions that the definition has now and are not hooked yet."""
        op = self.operators.custom_op(definition)
        ours = {id(wrapper) for *_, wrapper in self._replaced}
        functions = definition._backend_fns
        for key, function in list(functions.items()):
            if id(function) not in ours:
                wrapper = functions[key] = self._wrapped(op, function)
                self._replaced.append((functions, key, function, wrapper))

    def _wrapped(self, op: Watched, function: Callable[..., Any]) -> Callable[..., Any]:
        calls, functions = self.calls, self.functions
        recorder = calls.recorder
        claim = partial(functions.claim_context, op)

        @wraps(function)
        def kernel(*args: Any, **kwargs: Any) -> Any:
            try:
                if (watch.recorder is not recorder and not scope.late) or tracing():
                    phase = None
                else:
                    phase = functions.forward_phase(op)
            except Exception as error:
                recorder.fault(HOST, error)
                phase = None
            if phase is None:
                return function(*args, **kwargs)
            return calls.run(op, phase, function, args, kwargs, claim)

        return kernel

    def _register_kernel(self, original: Callable[..., Any]) -> Callable[..., Any]:
        hooks = self

        def register_kernel(self: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(self, *args, **kwargs)
            if not is_torchs_own(self):
                hooks._hook_soon(self)
                if callable(made) and getattr(made, "__name__", "") == "inner":

                    @wraps(made)
                    def inner(function: Any) -> Any:
                        result = made(function)
                        hooks._hook_soon(self)
                        return result

                    return inner
            return made

        return register_kernel

    def _hook_soon(self, definition: Any) -> None:
        try:
            if watch.recorder is self.calls.recorder or not self.calls.recorder.closed:
                self.hook(definition)
        except Exception as error:
            self.calls.recorder.fault("torch custom_op", error)
