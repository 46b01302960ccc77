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


def stand_in(cls: Any, brackets: Brackets) -> Any:
    """The class itself where no stand-in can be made.

    Patching `cls.forward` would be seen by the program and by its compiler. torch's C code takes
    three things from the class it is given: its name, the class of its nodes and its functions. So
    it is given a subclass that inherits the first two; nobody else ever sees that one.
    """
    function = sys.modules["torch.autograd.function"]
    own_context = cls.setup_context is not function._SingleLevelFunction.setup_context

    def forward(*args: Any, **kwargs: Any) -> Any:
        brackets.began(None if own_context or not args else args[0])
        try:
            return cls.forward(*args, **kwargs)
        finally:
            brackets.ended(None)

    body: dict[str, Any] = {
        "forward": staticmethod(forward),
        "__module__": cls.__module__,
        STAND_IN: True,
    }
    if own_context:

        def setup_context(context: Any, *args: Any, **kwargs: Any) -> Any:
            brackets.context(context)
            try:
                return cls.setup_context(context, *args, **kwargs)
            finally:
                brackets.ended(None)

        body["setup_context"] = staticmethod(setup_context)
    try:
        # Not by a class statement: neither the metaclass nor `__init_subclass__` of the user's
        # classes may hear of it.
        made = type.__new__(type(cls), cls.__name__, (function.Function,), body)
        made.__bases__ = (cls,)
    except TypeError:
        return cls
    return made
