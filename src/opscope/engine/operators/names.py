"""Every operator by the name MXNet registers it under, called as MXNet calls it."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from .. import random
from ..array import Array, apply, arange, eye, full, ones, zeros
from . import axes, elementwise, joining, layers, linear, maths, picking, powers, reduce, shaping

Function = Callable[..., Any]

FUNCTIONS: dict[str, Function] = {}


def _offer(names: str, fn: Function, *inputs: str) -> None:
    """Offer a function under these names; `inputs` are the names of its first arguments."""

    def call(*args: Any, **params: Any) -> Any:
        # Only the leading ones: what comes after a missing one keeps its name.
        given = list(args)
        for name in inputs[len(args) :]:
            if name not in params:
                break
            given.append(params.pop(name))
        return fn(*given, **params)

    call.__name__ = call.__qualname__ = names.split()[0]
    call.__doc__ = fn.__doc__
    for name in names.split():
        FUNCTIONS[name] = call


def _of(name: str) -> Function:
    def call(*inputs: Array, out: Array | None = None) -> Array:
        return apply(name, *inputs, out=out)

    call.__doc__ = f"The operator {name}. Does not block."
    return call


def _of_scalar(name: str) -> Function:
    def call(a: Array, scalar: Any, out: Array | None = None) -> Array:
        plain = int(scalar) if isinstance(scalar, numbers.Integral) else float(scalar)
        return apply(name, a, out=out, scalar=plain)

    call.__doc__ = f"The operator {name}, with a number. Does not block."
    return call


for _name in [
    "plus",
    "minus",
    "rminus",
    "mul",
    "div",
    "rdiv",
    "power",
    "rpower",
    "mod",
    "rmod",
    "maximum",
    "minimum",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]:
    _offer(f"_{_name}_scalar", _of_scalar(f"_{_name}_scalar"), "data", "scalar")
for _name in [
    "add",
    "sub",
    "mul",
    "div",
    "power",
    "mod",
    "maximum",
    "minimum",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
]:
    _offer(f"broadcast_{_name}", _of(f"broadcast_{_name}"), "lhs", "rhs")
for _name, _more in {
    "add": "_add _plus",
    "sub": "_sub _minus",
    "mul": "_mul",
    "div": "_div",
}.items():
    _offer(f"elemwise_{_name} {_more}", _of(f"elemwise_{_name}"), "lhs", "rhs")
for _name in (
    *("sqrt", "square", "exp", "log", "negative", "relu", "sigmoid", "tanh", "logical_not"),
):
    _offer(_name, getattr(elementwise, _name), "data")
for _name in [
    "rsqrt",
    "cbrt",
    "reciprocal",
    "expm1",
    "log1p",
    "log10",
    "log2",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arccosh",
    "arctanh",
    "sign",
    "floor",
    "ceil",
    "rint",
    "fix",
    "trunc",
]:
    _offer(_name, getattr(maths, _name), "data")
for _names, _fn, _inputs in (
    ("abs", maths.abs_, "data"),
    ("round", maths.round_, "data"),
    ("clip", maths.clip, "data a_min a_max"),
    ("maximum", elementwise.maximum, "lhs rhs"),
    ("minimum", elementwise.minimum, "lhs rhs"),
    ("power _power", powers.power, "lhs rhs"),
    ("modulo _mod", powers.mod, "lhs rhs"),
    ("dot", linear.dot, "lhs rhs"),
    ("batch_dot", linear.batch_dot, "lhs rhs"),
    ("sum sum_axis", reduce.sum_, "data"),
    ("mean", reduce.mean, "data"),
    ("prod", reduce.prod, "data"),
    ("max max_axis", reduce.max_, "data"),
    ("min min_axis", reduce.min_, "data"),
    ("norm", reduce.norm, "data"),
    ("argmax", reduce.argmax, "data"),
    ("argmin", reduce.argmin, "data"),
    ("broadcast_to", reduce.broadcast_to, "data"),
    ("broadcast_like", reduce.broadcast_like, "lhs rhs"),
    ("broadcast_axis broadcast_axes", reduce.broadcast_axis, "data"),
    ("softmax", layers.softmax, "data"),
    ("log_softmax", layers.log_softmax, "data"),
    ("softmax_cross_entropy", layers.softmax_cross_entropy, "data label"),
    ("Activation", layers.activation, "data"),
    ("FullyConnected", layers.fully_connected, "data weight bias"),
    ("concat Concat", joining.concat, ""),
    ("stack", joining.stack, ""),
    ("add_n ElementWiseSum", joining.add_n, ""),
    ("split SliceChannel", joining.split, "data"),
    ("tile", joining.tile, "data"),
    ("repeat", joining.repeat, "data"),
    ("slice", picking.slice_, "data"),
    ("slice_axis", picking.slice_axis, "data"),
    ("take", picking.take, "a indices"),
    ("pick", picking.pick, "data index"),
    ("where", picking.where, "condition x y"),
    ("one_hot", shaping.one_hot, "indices"),
    ("zeros_like", shaping.zeros_like, "data"),
    ("ones_like", shaping.ones_like, "data"),
    ("identity _copy", shaping.identity, "data"),
    ("BlockGrad stop_gradient", shaping.stop_gradient, "data"),
    ("cast Cast", shaping.cast, "data"),
    ("transpose", axes.transpose, "data"),
    ("reshape Reshape", axes.reshape, "data"),
    ("Flatten flatten", axes.flatten, "data"),
    ("expand_dims", axes.expand_dims, "data"),
    ("squeeze", axes.squeeze, "data"),
    ("SwapAxis swapaxes", axes.swapaxes, "data"),
    ("reverse flip", axes.reverse, "data"),
    ("_zeros zeros", zeros, "shape"),
    ("_ones ones", ones, "shape"),
    ("_full full", full, "shape value"),
    ("_arange arange", arange, "start stop step"),
    ("_eye eye", eye, "N M k"),
    ("_random_uniform random_uniform uniform", random.uniform, "low high"),
    ("_random_normal random_normal normal", random.normal, "loc scale"),
):
    _offer(_names, _fn, *_inputs.split())
_offer("_copyto", _of("_copyto"), "data")


def function(name: str) -> Function:
    """The function of the operator that MXNet calls `name`; KeyError if there is none.

    Arrays come first, in order or by MXNet's names; parameters have MXNet's names; `out` takes the
    result. Positional parameters follow the function in `opscope.engine`.
    """
    return FUNCTIONS[name]
