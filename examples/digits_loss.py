"""A small network on real handwritten digits, with two operators of its own.

    python examples/digits_loss.py            trains it
    opscope run examples/digits_loss.py       trains it, and shows what the two operators did

Nothing here knows about profiling. `SoftmaxLoss` computes with NumPy and has to wait for its input;
`Swish` is put together from operators of the engine, and somebody left a check in it.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from opscope import engine as nd

DATA = Path(__file__).with_name("data") / "digits.csv.gz"
HIDDEN = 32
BATCH = 48
RATE = 0.5
HELD_OUT = 360


class SoftmaxLoss(nd.CustomOp):
    """Scores and labels in, probabilities out; its gradient is that of the mean cross-entropy."""

    def forward(self, is_train, req, in_data, out_data, aux):
        scores = in_data[0].asnumpy()
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], nd.array(weights / weights.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        labels = in_data[1].asnumpy().astype(np.int64)
        slope = out_data[0].asnumpy().copy()
        slope[np.arange(len(labels)), labels] -= 1.0
        self.assign(in_grad[0], req[0], nd.array(slope / len(labels)))


@nd.register("SoftmaxLoss")
class SoftmaxLossProp(nd.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=False)

    def list_arguments(self):
        return ["scores", "label"]

    def list_outputs(self):
        return ["probability"]

    def infer_shape(self, in_shape):
        scores = in_shape[0]
        return [scores, (scores[0],)], [scores], []

    def create_operator(self, ctx, shapes, dtypes):
        return SoftmaxLoss()


class Swish(nd.CustomOp):
    """x * sigmoid(x)."""

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0]
        check_finite(x)
        self.assign(out_data[0], req[0], x * sigmoid(x))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        gate = sigmoid(in_data[0])
        slope = gate + out_data[0] * (1.0 - gate)
        self.assign(in_grad[0], req[0], out_grad[0] * slope)


@nd.register("Swish")
class SwishProp(nd.CustomOpProp):
    def list_arguments(self):
        return ["data"]

    def list_outputs(self):
        return ["output"]

    def infer_shape(self, in_shape):
        return [in_shape[0]], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return Swish()


def sigmoid(x):
    return 1.0 / (nd.exp(-x) + 1.0)


def check_finite(x):
    """Looks harmless; waits for the engine, then looks at every value in Python."""
    for row in x.asnumpy():
        for value in row:
            if not math.isfinite(value):
                raise FloatingPointError("the network has diverged")


def load_digits():
    """Pixels from 0 to 1 with a last column of ones, which stands for a bias; and the labels."""
    table = np.loadtxt(DATA, delimiter=",", skiprows=1, dtype=np.float32)
    pixels, labels = table[:, :-1] / 16.0, table[:, -1]
    return np.hstack([pixels, np.ones((len(pixels), 1), np.float32)]), labels


def probabilities(pixels, labels, first, second):
    hidden = nd.custom(nd.dot(nd.array(pixels), first), op_type="Swish")
    return nd.custom(nd.dot(hidden, second), nd.array(labels), op_type="SoftmaxLoss")


def main(epochs=3):
    """Train, print loss and accuracy after each epoch, and return the last accuracy."""
    pixels, labels = load_digits()
    random = np.random.default_rng(2019)
    order = random.permutation(len(labels))
    test, train = order[:HELD_OUT], order[HELD_OUT:]

    width = pixels.shape[1]
    first = nd.array(random.normal(0, width**-0.5, (width, HIDDEN)).astype(np.float32))
    second = nd.array(random.normal(0, HIDDEN**-0.5, (HIDDEN, 10)).astype(np.float32))
    first.attach_grad()
    second.attach_grad()

    accuracy = 0.0
    for epoch in range(1, epochs + 1):
        losses = []
        random.shuffle(train)
        for start in range(0, len(train), BATCH):
            batch = train[start : start + BATCH]
            with nd.autograd.record():
                found = probabilities(pixels[batch], labels[batch], first, second)
            found.backward()
            for weight in (first, second):
                weight -= weight.grad * RATE
            right = found.asnumpy()[np.arange(len(batch)), labels[batch].astype(np.int64)]
            losses.append(-np.log(right).mean())
        found = probabilities(pixels[test], labels[test], first, second).asnumpy()
        accuracy = float((found.argmax(axis=1) == labels[test]).mean())
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
