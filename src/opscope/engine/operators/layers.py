"""What networks are made of: softmax, activations, fully connected layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..array import Array, apply
from ..errors import EngineError, ShapeError
from .elementwise import _sigmoid, sigmoid, square
from .linear import dot
from .maths import abs_
from .reduce import sum_
from .table import Shape, define, float_dtype, given_shape, same_dtype, same_shape


def _axis_shape(shape: Shape, *, axis: int, temperature: float) -> Shape:
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"no axis {axis} among {len(shape)}")
    return shape


def _log_softmax(out: Any, a: Any, axis: int, temperature: float) -> Any:
    scaled = a / temperature if a.dtype.kind == "f" else a.astype(np.float32) / temperature
    if not scaled.size:
        return scaled
    scaled = scaled - scaled.max(axis, keepdims=True)
    return scaled - np.log(np.exp(scaled).sum(axis, keepdims=True))


def _softmax(out: Any, a: Any, axis: int, temperature: float) -> Any:
    return np.exp(_log_softmax(None, a, axis, temperature))


def _softmax_back(out: Any, g: Any, o: Any, axis: int, temperature: float) -> Any:
    return (g - (g * o).sum(axis, keepdims=True)) * o / temperature


def _log_softmax_back(out: Any, g: Any, o: Any, axis: int, temperature: float) -> Any:
    return (g - np.exp(o) * g.sum(axis, keepdims=True)) / temperature


for _name, _forward, _back in (
    ("softmax", _softmax, _softmax_back),
    ("log_softmax", _log_softmax, _log_softmax_back),
):
    define(f"_backward_{_name}", _back, same_shape, same_dtype)
    define(
        _name,
        _forward,
        _axis_shape,
        float_dtype,
        lambda g, i, o, name=f"_backward_{_name}", **params: (apply(name, g, o, **params),),
    )


def _loss_shape(data: Shape, label: Shape) -> Shape:
    if len(data) != 2 or label != data[:1]:
        raise ShapeError(f"softmax_cross_entropy needs (n, k) and (n,), not {data} and {label}")
    return (1,)


def _chosen(data: Any, label: Any) -> tuple[Any, Any]:
    return np.arange(len(data)), np.clip(label.astype(np.int64), 0, data.shape[1] - 1)


def _loss(out: Any, data: Any, label: Any) -> Any:
    return -_log_softmax(None, data, 1, 1)[_chosen(data, label)].sum(keepdims=True)


def _loss_back(out: Any, g: Any, data: Any, label: Any, shape: Shape) -> Any:
    slope = _softmax(None, data, 1, 1)
    slope[_chosen(data, label)] -= 1
    return slope * g


define("_backward_softmax_cross_entropy", _loss_back, given_shape, lambda g, *_, **__: g)
define(
    "softmax_cross_entropy",
    _loss,
    _loss_shape,
    lambda data, label: float_dtype(data),
    lambda g, i, o: (apply("_backward_softmax_cross_entropy", g, *i, shape=i[0].shape), None),
)

_ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "relu": lambda out, a: np.maximum(a, 0, out=out),
    "sigmoid": _sigmoid,
    "tanh": lambda out, a: np.tanh(a, out=out),
    "softrelu": lambda out, a: np.logaddexp(a, 0, out=out),
    "softsign": lambda out, a: np.divide(a, np.abs(a) + 1, out=out),
}
_SLOPES: dict[str, Callable[..., Any]] = {
    "relu": lambda g, a, o: g * (o > 0),
    "sigmoid": lambda g, a, o: g * o * (1 - o),
    "tanh": lambda g, a, o: g * (1 - o * o),
    "softrelu": lambda g, a, o: g * sigmoid(a),
    "softsign": lambda g, a, o: g / square(abs_(a) + 1),
}
define(
    "Activation",
    lambda out, a, act_type: _ACTIVATIONS[act_type](out, a),
    same_shape,
    float_dtype,
    lambda g, i, o, act_type: (_SLOPES[act_type](g, i[0], o),),
)


def _connected_shape(
    data: Shape, weight: Shape, bias: Shape | None = None, *, num_hidden: int, flatten: bool
) -> Shape:
    wide = math.prod(data[1:]) if flatten else data[-1] if data else 0
    if not data or weight != (num_hidden, wide):
        raise ShapeError(f"FullyConnected needs weights ({num_hidden}, {wide}), not {weight}")
    if bias is not None and bias != (num_hidden,):
        raise ShapeError(f"FullyConnected needs a bias ({num_hidden},), not {bias}")
    return (*(data[:1] if flatten else data[:-1]), num_hidden)


def _connected(
    out: Any, data: Any, weight: Any, bias: Any = 0, *, num_hidden: int, flatten: bool
) -> Any:
    rows = data.reshape(len(data), weight.shape[1]) if flatten else data
    return np.dot(rows, weight.T) + bias


def _connected_grad(g: Array, ins: Any, out: Array, **_: Any) -> tuple[Array, ...]:
    data, weight = ins[:2]
    count = math.prod(g.shape[:-1])
    above, rows = g.reshape(count, g.shape[-1]), data.reshape(count, weight.shape[1])
    grads = dot(above, weight).reshape(data.shape), dot(above, rows, transpose_a=True)
    return grads if len(ins) == 2 else (*grads, sum_(above, axis=0))


define("FullyConnected", _connected, _connected_shape, float_dtype, _connected_grad)


def softmax(
    a: Array, axis: int = -1, temperature: float | None = None, out: Array | None = None
) -> Array:
    """Shares that add up to 1 along the axis. Does not block."""
    return apply("softmax", a, out=out, axis=axis, temperature=temperature or 1.0)


def log_softmax(
    a: Array, axis: int = -1, temperature: float | None = None, out: Array | None = None
) -> Array:
    """The logarithm of `softmax`, also where that is too small a number. Does not block."""
    return apply("log_softmax", a, out=out, axis=axis, temperature=temperature or 1.0)


def softmax_cross_entropy(data: Array, label: Array, out: Array | None = None) -> Array:
    """Minus the logarithms of the labels' shares, summed over all rows. Does not block."""
    return apply("softmax_cross_entropy", data, label, out=out)


def activation(data: Array, act_type: str, out: Array | None = None) -> Array:
    """One of relu, sigmoid, tanh, softrelu, softsign. Does not block."""
    if act_type not in _ACTIVATIONS:
        raise EngineError(f"act_type must be one of {', '.join(_ACTIVATIONS)}, not {act_type!r}")
    return apply("Activation", data, out=out, act_type=act_type)


def fully_connected(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    num_hidden: int | None = None,
    no_bias: bool = False,
    flatten: bool = True,
    out: Array | None = None,
) -> Array:
    """`data` times the transposed weights, plus the bias unless `no_bias`. Does not block.

    With `flatten` all axes but the first are one.
    """
    if bias is None and not no_bias:
        raise ShapeError("FullyConnected needs a bias, or no_bias=True")
    inputs = (data, weight) if no_bias or bias is None else (data, weight, bias)
    if num_hidden is None:
        num_hidden = weight.shape[0] if weight.shape else 0
    return apply("FullyConnected", *inputs, out=out, num_hidden=num_hidden, flatten=flatten)


Activation = activation
FullyConnected = fully_connected
