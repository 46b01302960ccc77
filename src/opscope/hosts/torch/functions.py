"""Hooks around the forward and backward of `torch.autograd.Function`."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from opscope.hosts.torch.calls import Calls
from opscope.hosts.torch.modes import tracing
from opscope.hosts.torch.operators import Operators, Watched
from opscope.hosts.torch.recompute import Recompute
from opscope.hosts.torch.stand_in import Brackets, stand_in
from opscope.model import LinkKind, Phase
from opscope.record import scope, watch
from opscope.record.patch import patched
from opscope.record.scope import Frame


class Functions:
    """Patches `apply` of the base class, which every way of calling a Function ends in, and of the
    class of its backward nodes.

    `linked` are the backward calls whose forward call was known when they ran.
    """

    def __init__(self, calls: Calls, operators: Operators) -> None:
        self.calls = calls
        self.operators = operators
        self.recompute = Recompute()
        self.linked: set[int] = set()
        self._base: Any = sys.modules["torch.autograd.function"]._SingleLevelFunction
        self._torch: Any = sys.modules["torch"]
        self._stand_ins: weakref.WeakKeyDictionary[type, Any] = weakref.WeakKeyDictionary()
        #: The forward call that each node of the graph comes from, by the node's context.
        self._forward: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._here = threading.local()

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """Inside the block the calls of every Function are recorded."""
        function = sys.modules["torch.autograd.function"]
        with ExitStack() as stack:
            stack.enter_context(self._apply_replaced())
            for name in ("apply", "apply_boxed"):
                stack.enter_context(patched(function.BackwardCFunction, name, self._backward))
            stack.enter_context(self.recompute.hooked())
            yield

    @contextmanager
    def _apply_replaced(self) -> Iterator[None]:
        """The base class has no `apply` of its own; its base is written in C."""
        base, ours = self._base, classmethod(self._make_apply())
        had = vars(base).get("apply")
        base.apply = ours
        try:
            yield
        finally:
            if vars(base).get("apply") is ours:
                if had is None:
                    del base.apply
                else:
                    base.apply = had

    def _make_apply(self) -> Callable[..., Any]:
        base, recorder = self._base, self.calls.recorder

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if watch.recorder is not recorder and not scope.late:
                return _c_apply(base, cls)(*args, **kwargs)
            return self._forward_call(cls, args, kwargs)

        return apply

    def _forward_call(self, cls: Any, args: Any, kwargs: Any) -> Any:
        original = _c_apply(self._base, cls)
        try:
            op = self.operators.function(cls)
            if op is None or tracing():
                return original(*args, **kwargs)
            inner = self._stand_in(cls, op)
            generated = op.outside
        except Exception as error:
            self.calls.recorder.fault("torch autograd.Function", error)
            return original(*args, **kwargs)
        if generated:  # only its context is of interest: the operator's own hook records the call
            return inner(*args, **kwargs)
        return self.calls.run(op, self.forward_phase(), inner, args, kwargs, self._note_grad)

    def _stand_in(self, cls: Any, op: Watched) -> Any:
        """The C function `apply` of a class that looks like `cls` and tells when its forward
        begins and ends; of `cls` itself where no such class can be made."""
        made = self._stand_ins.get(cls)
        if made is None:
            brackets = (
                Brackets(partial(self._await, op), partial(self._await, None), _nothing)
                if op.outside
                else Brackets(self._began, self._ended, self._context)
            )
            shown = stand_in(cls, brackets)
            made = self._stand_ins[cls] = _c_apply(self._base, shown)
        return made

    # --- moments of a forward ---------------------------------------------------------------------

    def _note_grad(self, frame: Frame) -> None:
        frame.mark = (0, 0)
        self._here.grad = self._torch.is_grad_enabled()

    def _began(self, context: Any) -> None:
        frame = scope.held()
        if frame is not None and frame.mark == (0, 0):
            frame.mark = (self.calls.recorder.now(), 0)
            self._context(context)

    def _ended(self, context: Any) -> None:
        frame = scope.held()
        if frame is not None and frame.mark is not None and frame.mark[0]:
            frame.mark = (frame.mark[0], self.calls.recorder.now())

    def _context(self, context: Any) -> None:
        frame = scope.held()
        if context is not None and frame is not None and getattr(self._here, "grad", False):
            self._forward[context] = frame.call

    def _await(self, op: Watched | None, context: Any) -> None:
        """A context was made for a call of a custom_op that has not begun yet."""
        self._here.waiting = op, context

    def claim_context(self, op: Watched, frame: Frame) -> None:
        """A call of a custom_op began: the context that was made for it, if one was, is its."""
        wanted, context = getattr(self._here, "waiting", (None, None))
        if wanted is op and context is not None:
            self._here.waiting = None, None
            self._forward[context] = frame.call

    def forward_phase(self) -> Phase:
        """Which phase a forward call that begins now is in."""
        frame = scope.held()
        return self.recompute.phase(frame, self._torch)

    # --- backward ---------------------------------------------------------------------------------

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self.calls.recorder

        def apply(node: Any, *args: Any) -> Any:
            if watch.recorder is not recorder and not scope.late:
                return original(node, *args)
            try:
                cls = node._forward_cls
                op = self.operators.function(cls)
                again = op is None and cls.__name__ == "CheckpointFunction"
            except Exception as error:
                recorder.fault("torch autograd.Function", error)
                return original(node, *args)
            if again:
                with self.recompute.running():
                    return original(node, *args)
            if op is None or tracing():
                return original(node, *args)

            def began(frame: Frame) -> None:
                self.recompute.entered(frame, self._torch)
                forward = self._forward.get(node, 0)
                if forward:
                    self.linked.add(frame.call)
                    recorder.link(LinkKind.BACKWARD, frame.call, forward)

            return self.calls.run(op, Phase.BACKWARD, original, (node, *args), {}, began)

        return apply


def _c_apply(base: Any, cls: Any) -> Any:
    """`apply` as it is below torch's base class for Functions, bound to `cls`."""
    found: Any = super(base, cls)
    return found.apply


def _nothing(context: Any) -> None:
    """For moments nobody asks for."""
