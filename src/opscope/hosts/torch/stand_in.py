"""A class that torch takes for a user's autograd.Function, whose forward tells when it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opscope.hosts.torch.operators import STAND_IN

Moment = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Brackets:
    """What is called with the context (None where there is none yet) as the user's functions run:
    before forward, after whichever is last, and with a context that forward was not given."""

    began: Moment
    ended: Moment
    context: Moment


def stand_in(cls: Any, brackets: Brackets, guarded: Callable[[Moment], Moment]) -> Any:
    """A class for torch's C code to call in the place of `cls`.

    Patching `cls.forward` would be seen by the program and by its compiler. The C function `apply`
    takes three things from the class it is given: its name, the class of its nodes, and the user's
    functions. So it is given a class that has just these, and that nobody else ever sees. `guarded`
    makes a moment that never raises.
    """
    function = sys.modules["torch.autograd.function"]
    began, ended, context_made = map(guarded, (brackets.began, brackets.ended, brackets.context))

    def forward(*args: Any, **kwargs: Any) -> Any:
        began(None if own_context or not args else args[0])
        try:
            return cls.forward(*args, **kwargs)
        finally:
            ended(None)

    def setup_context(context: Any, *args: Any, **kwargs: Any) -> Any:
        context_made(context)
        try:
            return cls.setup_context(context, *args, **kwargs)
        finally:
            ended(None)

    own_context = cls.setup_context is not function._SingleLevelFunction.setup_context
    body: dict[str, Any] = {
        "forward": staticmethod(forward),
        "__module__": cls.__module__,
        "_backward_cls": cls._backward_cls,
        STAND_IN: True,
    }
    if own_context:
        body["setup_context"] = staticmethod(setup_context)
    # Not by a class statement: the metaclass would make a class of nodes of its own.
    return type.__new__(function.FunctionMeta, cls.__name__, (function.Function,), body)
