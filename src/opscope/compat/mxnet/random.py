"""`mx.random`: see `mx.nd.random`, which is the same."""

from __future__ import annotations

from opscope.compat.mxnet.absent import lacks
from opscope.compat.mxnet.nd.random import normal, seed, uniform

__all__ = ["normal", "seed", "uniform"]

__getattr__ = lacks("mx.random", lambda: __all__)
