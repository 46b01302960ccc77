"""Random arrays: the same by seed, whatever threads run what and in which order."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from opscope import engine as nd

from .test_custom import define

SETTINGS: tuple[dict[str, Any], ...] = (
    {"kind": "naive"},
    {"workers": 1},
    {"workers": 4},
    {"workers": 2, "custom_on": "workers"},
)


def draw(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
    depth = int(op.params["depth"])
    x = ins[0] + nd.random.normal(shape=2)
    if depth:
        inner = [nd.custom(ins[0], op_type="r_draw", depth=depth - 1) for _ in range(2)]
        x = x + inner[0] * 10 + inner[1] * 100
    op.assign(outs[0], req[0], x + nd.random.uniform(shape=2))


def pull(op: Any, req: Any, grads: Any, ins: Any, outs: Any, in_grads: Any, aux: Any) -> None:
    op.assign(in_grads[0], req[0], grads[0] + nd.random.uniform(shape=2))


def test_bodies_draw_the_same_on_every_kind() -> None:
    define("r_draw", draw, pull)
    seen: list[Any] = []
    for settings in SETTINGS:
        nd.use(**settings)
        nd.random.seed(7)
        a = nd.zeros(2, "float64")
        a.attach_grad()
        with nd.autograd.record():
            results = [nd.custom(a, op_type="r_draw", depth=n % 3) for n in range(12)]
        nd.autograd.backward(results)
        assert a.grad is not None
        seen.append([result.asnumpy().tolist() for result in [*results, a.grad]])
    nd.use()
    assert all(one == seen[0] for one in seen)
    values = {value for row in seen[0] for value in row}
    assert len(values) == 2 * 13  # no two draws are alike


def test_the_seed_at_the_push_counts() -> None:
    nd.use(workers=2)

    def slow(op: Any, is_train: Any, req: Any, ins: Any, outs: Any, aux: Any) -> None:
        time.sleep(0.01)
        op.assign(outs[0], req[0], nd.random.uniform(shape=3))

    define("r_slow", slow)
    found = []
    for after in (1, 2):
        nd.random.seed(3)
        result = nd.custom(nd.zeros(3), op_type="r_slow")
        nd.random.seed(after)
        found.append(result.asnumpy().tolist())
    assert found[0] == found[1]
    nd.use()


def test_seeds_differ_and_any_int_is_one() -> None:
    seen = set()
    for seed in (0, 1, -1, 2**70 + 5):
        nd.random.seed(seed)
        seen.add(tuple(nd.random.uniform(shape=4).asnumpy().tolist()))
    assert len(seen) == 4


def test_out_gives_shape_and_type() -> None:
    out = nd.empty((2, 3), "float64")
    nd.random.seed(1)
    assert nd.random.normal(5, 0.1, out=out) is out
    first = out.asnumpy()
    nd.random.seed(1)
    again = nd.random.normal(5, 0.1, (2, 3), "float64")
    assert again.asnumpy().tolist() == first.tolist()
    assert np.abs(first - 5).max() < 1
    assert nd.random.uniform().shape == (1,)
