"""Operators for the contract test; operators of torch can be defined once a process."""

from __future__ import annotations

from typing import Any

import torch


@torch.library.custom_op("opscope_contract::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2.0


twice.register_autograd(lambda ctx, grad: grad * 2.0)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2.0
