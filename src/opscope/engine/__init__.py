"""An asynchronous dependency engine on NumPy: arrays, operators, gradients, custom operators.

graph (who may run when) <- engine, naive, scheduler, threaded (who runs it, and waiting) <-
current (the engine in use) <- array, operators, autograd <- custom operators. Watchers: hooks.
"""

from __future__ import annotations

from . import autograd, random
from .array import Array, apply, arange, array, empty, full, ones, zeros
from .calls import Call, CustomOpInfo, running_calls
from .current import get, use
from .custom import Context, CustomOp, CustomOpProp, register, registered
from .custom_call import custom
from .engine import Engine
from .errors import EngineError, GraphError, RegistrationError, ShapeError
from .facade import bulk, delete_var, new_var, push_async, push_sync, wait_for_var, waitall
from .graph import CHORE, CUSTOM, HIDDEN, OP, Failure, Graph, Task, Var
from .hooks import MOMENTS, Hooks, hooks
from .naive import NaiveEngine
from .operators.elementwise import (
    exp,
    log,
    maximum,
    minimum,
    negative,
    relu,
    sigmoid,
    sqrt,
    square,
    tanh,
)
from .operators.linear import dot
from .operators.reduce import argmax, broadcast_to, mean
from .operators.reduce import max_ as max
from .operators.reduce import sum_ as sum
from .operators.shaping import one_hot, ones_like, reshape, transpose, zeros_like
from .pool import Worker
from .threaded import ThreadedEngine

Custom = custom

__all__ = [
    "CHORE",
    "CUSTOM",
    "HIDDEN",
    "MOMENTS",
    "OP",
    "Array",
    "Call",
    "Context",
    "Custom",
    "CustomOp",
    "CustomOpInfo",
    "CustomOpProp",
    "Engine",
    "EngineError",
    "Failure",
    "Graph",
    "GraphError",
    "Hooks",
    "NaiveEngine",
    "RegistrationError",
    "ShapeError",
    "Task",
    "ThreadedEngine",
    "Var",
    "Worker",
    "apply",
    "arange",
    "argmax",
    "array",
    "autograd",
    "broadcast_to",
    "bulk",
    "custom",
    "delete_var",
    "dot",
    "empty",
    "exp",
    "full",
    "get",
    "hooks",
    "log",
    "max",
    "maximum",
    "mean",
    "minimum",
    "negative",
    "new_var",
    "one_hot",
    "ones",
    "ones_like",
    "push_async",
    "push_sync",
    "random",
    "register",
    "registered",
    "relu",
    "reshape",
    "running_calls",
    "sigmoid",
    "sqrt",
    "square",
    "sum",
    "tanh",
    "transpose",
    "use",
    "wait_for_var",
    "waitall",
    "zeros",
    "zeros_like",
]
