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
        self.recompute = Recompute(calls.recorder)
        self.linked: set[int] = set()
        self._base: Any = sys.modules["torch.autograd.function"]._SingleLevelFunction
        self._torch: Any = sys.modules["torch"]
        self._known: weakref.WeakKeyDictionary[type, tuple[Watched | None, Any, bool]] = (
            weakref.WeakKeyDictionary()
        )
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
            known = self._known.get(cls)
            if known is None:
                known = self._known[cls] = self._look(cls)
            op, inner, generated = known
            # Names of arguments are looked up in the code of the user's forward.
            if kwargs:
                inner = original
            if op is None or tracing():
                return original(*args, **kwargs)
            phase = self.forward_phase()
        except Exception as error:
            self.calls.recorder.fault("torch autograd.Function", error)
            return original(*args, **kwargs)
        if generated:  # only its context is of interest: the operator's own hook records the call
            return inner(*args, **kwargs)
        return self.calls.run(op, phase, inner, args, kwargs, _await_forward)

    def _look(self, cls: Any) -> tuple[Watched | None, Any, bool]:
        """The operator of a class, the C function `apply` of a class that looks like it and tells
        when its forward begins and ends, and whether torch generated it for a custom_op."""
        op = self.operators.function(cls)
        if op is None:
            return None, None, False
        if op.outside:
            brackets = Brackets(partial(self._await, op), partial(self._await, None), _nothing)
        else:
            brackets = Brackets(self._began, self._ended, self._context)
        return op, _c_apply(self._base, stand_in(cls, brackets, self.calls.guarded)), op.outside

    # --- moments of a forward ---------------------------------------------------------------------

    def _began(self, context: Any) -> None:
        frame = scope.held()
        if frame is not None and frame.mark == _WAITING:
            frame.mark = (self.calls.recorder.now(), 0)
            if context is not None:
                self._forward[context] = frame.call

    def _ended(self, context: Any) -> None:
        frame = scope.held()
        if frame is not None and frame.mark is not None and frame.mark[0] > 0:
            frame.mark = (frame.mark[0], self.calls.recorder.now())

    def _context(self, context: Any) -> None:
        frame = scope.held()
        if frame is not None and frame.mark is not None and frame.mark[0] > 0:
            self._forward[context] = frame.call

    def _await(self, op: Watched | None, context: Any) -> None:
        """A context was made for a call of a custom_op that has not begun yet."""
        self._here.waiting = op, context

    def claim_context(self, op: Watched, frame: Frame) -> None:
        """A call of a custom_op began: the context that was made for it, if one was, is its."""
        wanted, context = getattr(self._here, "waiting", _NOBODY)
        if wanted is op and context is not None:
            self._here.waiting = _NOBODY
            self._forward[context] = frame.call

    def forward_phase(self, op: Watched | None = None) -> Phase:
        """Which phase a forward call that begins now is in; `op` if a context may wait for it, for
        then gradients were on when torch was called, though they are off by now."""
        frame = scope.held()
        if frame is None and not self.recompute.anywhere:
            return Phase.FORWARD
        waits = op is not None and getattr(self._here, "waiting", _NOBODY)[0] is op
        return self.recompute.phase(frame, waits or self._torch.is_grad_enabled())

    # --- backward ---------------------------------------------------------------------------------

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self.calls.recorder

        def apply(node: Any, *args: Any) -> Any:
            if watch.recorder is not recorder and not scope.late:
                return original(node, *args)
            try:
                cls = node._forward_cls
                op = self.operators.function(cls) or self.operators.behind(cls)
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
                self.recompute.entered(frame, self._torch.is_grad_enabled())
                forward = self._forward.get(node, 0)
                if forward:
                    self.linked.add(frame.call)
                    recorder.link(LinkKind.BACKWARD, frame.call, forward)

            return self.calls.run(op, Phase.BACKWARD, original, (node, *args), {}, began)

        return apply


#: The mark of a call whose forward has not begun, and what waits where nothing does.
_WAITING = (0, 0)
_NOBODY: tuple[Any, Any] = (None, None)


def _await_forward(frame: Frame) -> None:
    frame.mark = _WAITING


def _c_apply(base: Any, cls: Any) -> Any:
    """`apply` as it is below torch's base class for Functions, bound to `cls`."""
    found: Any = super(base, cls)
    return found.apply


def _nothing(context: Any) -> None:
    """For moments nobody asks for."""
