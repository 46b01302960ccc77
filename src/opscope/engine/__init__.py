"""An asynchronous dependency engine on NumPy: arrays, operators, gradients, custom operators.

graph (who may run when) <- engine, naive, scheduler, threaded (who runs it, and waiting) <-
current (the engine in use) <- array, operators, autograd <- custom operators. Watchers: hooks.
"""

from __future__ import annotations

from . import autograd, random
from .array import Array, apply, arange, array, empty, eye, full, ones, several, zeros
from .calls import Call, CustomOpInfo, running_calls
from .current import get, use
from .custom import Context, CustomOp, CustomOpProp, register, registered
from .custom_call import custom, custom_into
from .engine import Engine
from .errors import EngineError, GraphError, RegistrationError, ShapeError
from .facade import bulk, delete_var, new_var, push_async, push_sync, wait_for_var, waitall
from .graph import CHORE, CUSTOM, HIDDEN, OP, Failure, Graph, Task, Var
from .hooks import MOMENTS, Hooks, hooks
from .naive import NaiveEngine
from .operators.axes import Flatten, expand_dims, flatten, reshape, squeeze, transpose
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
from .operators.joining import concat, repeat, split, stack, tile
from .operators.layers import (
    Activation,
    FullyConnected,
    activation,
    fully_connected,
    log_softmax,
    softmax,
    softmax_cross_entropy,
)
from .operators.linear import batch_dot, dot
from .operators.maths import abs_ as abs
from .operators.maths import (
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cbrt,
    ceil,
    clip,
    cos,
    cosh,
    expm1,
    floor,
    log1p,
    log2,
    log10,
    reciprocal,
    rsqrt,
    sign,
    sin,
    sinh,
    tan,
)
from .operators.picking import pick, slice_axis, take, where
from .operators.picking import slice_ as slice
from .operators.powers import mod, power
from .operators.reduce import (
    argmax,
    argmin,
    broadcast_like,
    broadcast_to,
    mean,
    norm,
    prod,
)
from .operators.reduce import max_ as max
from .operators.reduce import min_ as min
from .operators.reduce import sum_ as sum
from .operators.shaping import (
    BlockGrad,
    cast,
    identity,
    one_hot,
    ones_like,
    stop_gradient,
    zeros_like,
)
from .pool import Worker
from .threaded import ThreadedEngine

Custom = custom

__all__ = [
    "CHORE",
    "CUSTOM",
    "HIDDEN",
    "MOMENTS",
    "OP",
    "Activation",
    "Array",
    "BlockGrad",
    "Call",
    "Context",
    "Custom",
    "CustomOp",
    "CustomOpInfo",
    "CustomOpProp",
    "Engine",
    "EngineError",
    "Failure",
    "Flatten",
    "FullyConnected",
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
    "abs",
    "activation",
    "apply",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "argmax",
    "argmin",
    "array",
    "autograd",
    "batch_dot",
    "broadcast_like",
    "broadcast_to",
    "bulk",
    "cast",
    "cbrt",
    "ceil",
    "clip",
    "concat",
    "cos",
    "cosh",
    "custom",
    "custom_into",
    "delete_var",
    "dot",
    "empty",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "flatten",
    "floor",
    "full",
    "fully_connected",
    "get",
    "hooks",
    "identity",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mod",
    "negative",
    "new_var",
    "norm",
    "one_hot",
    "ones",
    "ones_like",
    "pick",
    "power",
    "prod",
    "push_async",
    "push_sync",
    "random",
    "reciprocal",
    "register",
    "registered",
    "relu",
    "repeat",
    "reshape",
    "rsqrt",
    "running_calls",
    "several",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "slice",
    "slice_axis",
    "softmax",
    "softmax_cross_entropy",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "sum",
    "take",
    "tan",
    "tanh",
    "tile",
    "transpose",
    "use",
    "wait_for_var",
    "waitall",
    "where",
    "zeros",
    "zeros_like",
]
