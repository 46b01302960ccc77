"""What MXNet's design of 2019 had to leave open: names that fool it, nesting, failing, workers.

    python examples/limits_2019.py          runs it
    opscope run examples/limits_2019.py     records what belongs to whom

The 2019 profiler knew a custom operator by the name `Custom` and a sub-operator by `::` in its
name, so operators called `Custom` or `XX::XX` were misread; nested calls lost their parent, failed
ones their row; and it counted on custom operators having threads of their own. Here they run on
the engine's own workers.
"""

from __future__ import annotations

import numpy as np

from opscope import engine as nd


def operator(name, body):
    """A custom operator with one input and one output, whose forward is `body`."""

    class Op(nd.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], body(in_data[0]))

    @nd.register(name)
    class Prop(nd.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):
            return Op()

    return lambda x: nd.custom(x, op_type=name)


def thinks(x):
    """Python, then two sub-operators it waits for."""
    total = sum(i * i for i in range(60_000))
    y = nd.dot(x, x) * (1.0 / (total + 1.0))
    y.wait_to_read()
    return y


def nests(x):
    """Python and a sub-operator, then a call of the operator called `XX::XX`."""
    total = sum(i for i in range(60_000))
    return inner(x * (1.0 / total)) + 1.0


def fails(x):
    """One sub-operator and some Python, then an exception."""
    x + 1.0
    sum(range(300_000))
    raise ValueError("failed, as it should")


inner = operator("XX::XX", thinks)
outer = operator("Custom", nests)
broken = operator("Broken", fails)


def main():
    """One call of each, on two workers that run operators and custom operators alike."""
    nd.use("threaded", workers=2, custom_on="workers")
    x = nd.array(np.full((400, 400), 0.01, np.float32))
    (x * 2.0).wait_to_read()  # a regular operator, for comparison
    result = outer(x)
    try:
        broken(x).wait_to_read()
    except ValueError as error:
        print("Broken:", error)
    print("Custom:", result.asnumpy().shape)
    nd.waitall()


if __name__ == "__main__":
    main()
