"""A program for Apache MXNet with custom operators of every kind: it knows nothing of opscope.

    python examples/mxnet_roi.py                      with MXNet 1.9.1
    make bench-mxnet                                  with both, side by side

Regions of interest of a feature map are pooled (NumPy), centred by a running mean (an operator with
an auxiliary state, made of sub-operators), weighed, and scored by a softmax loss (sub-operators).
Two passes add up their gradients.
"""

import mxnet as mx
import numpy as np


class RoIPool(mx.operator.CustomOp):
    """The largest feature in each cell of each region; in Python and NumPy."""

    def __init__(self, size, scale):
        super().__init__()
        self.size, self.scale = size, scale

    def cells(self, roi, height, width):
        """(row, column, rows, columns) of each cell of a region (image, x0, y0, x1, y1)."""
        x0, y0, x1, y1 = (round(float(edge) * self.scale) for edge in roi[1:])
        rows = np.linspace(y0, max(y1, y0 + 1), self.size + 1)
        columns = np.linspace(x0, max(x1, x0 + 1), self.size + 1)
        for i in range(self.size):
            for j in range(self.size):
                top, bottom = int(rows[i]), max(int(np.ceil(rows[i + 1])), int(rows[i]) + 1)
                left, right = (
                    int(columns[j]),
                    max(int(np.ceil(columns[j + 1])), int(columns[j]) + 1),
                )
                yield i, j, slice(top, min(bottom, height)), slice(left, min(right, width))

    def forward(self, is_train, req, in_data, out_data, aux):
        features, rois = in_data[0].asnumpy(), in_data[1].asnumpy()
        channels, height, width = features.shape[1:]
        best = np.zeros((len(rois), channels, self.size, self.size), np.float32)
        where = np.zeros_like(best)
        for number, roi in enumerate(rois):
            for i, j, rows, columns in self.cells(roi, height, width):
                cell = features[int(roi[0]), :, rows, columns]
                found = cell.reshape(channels, -1).argmax(axis=1)
                down, right = np.unravel_index(found, cell.shape[1:])
                best[number, :, i, j] = cell.reshape(channels, -1).max(axis=1)
                where[number, :, i, j] = (rows.start + down) * width + columns.start + right
        self.assign(out_data[0], req[0], mx.nd.array(best))
        self.assign(out_data[1], req[1], mx.nd.array(where))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        slope, where = out_grad[0].asnumpy(), out_data[1].asnumpy().astype(np.int64)
        rois = in_data[1].asnumpy()
        spread = np.zeros(in_data[0].shape, np.float32)
        for number, roi in enumerate(rois):
            for channel in range(spread.shape[1]):
                plane = spread[int(roi[0]), channel].reshape(-1)
                np.add.at(plane, where[number, channel].ravel(), slope[number, channel].ravel())
        self.assign(in_grad[0], req[0], mx.nd.array(spread))
        self.assign(in_grad[1], req[1], mx.nd.zeros(in_data[1].shape))


@mx.operator.register("RoIPool")
class RoIPoolProp(mx.operator.CustomOpProp):
    def __init__(self, size="2", scale="1.0"):
        super().__init__(need_top_grad=True)
        self.size, self.scale = int(size), float(scale)  # keywords arrive as strings

    def list_arguments(self):
        return ["features", "rois"]

    def list_outputs(self):
        return ["pooled", "where"]

    def infer_shape(self, in_shape):
        shape = (in_shape[1][0], in_shape[0][1], self.size, self.size)
        return in_shape, [shape, shape], []

    def create_operator(self, ctx, shapes, dtypes):
        return RoIPool(self.size, self.scale)


class Centre(mx.operator.CustomOp):
    """Less a running mean, which is its auxiliary state; sub-operators only."""

    def __init__(self, momentum):
        super().__init__()
        self.momentum = momentum

    def forward(self, is_train, req, in_data, out_data, aux):
        if is_train:
            mean = mx.nd.mean(in_data[0], axis=0, keepdims=True)
            aux[0][:] = aux[0] * self.momentum + mean * (1.0 - self.momentum)
        self.assign(out_data[0], req[0], mx.nd.broadcast_sub(in_data[0], aux[0]))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * (1.0 + 0.0 * self.momentum))


@mx.operator.register("Centre")
class CentreProp(mx.operator.CustomOpProp):
    def __init__(self, momentum="0.9"):
        super().__init__(need_top_grad=True)
        self.momentum = float(momentum)

    def list_auxiliary_states(self):
        return ["mean"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1, in_shape[0][1])]

    def create_operator(self, ctx, shapes, dtypes):
        return Centre(self.momentum)


class SoftmaxLoss(mx.operator.CustomOp):
    """Probabilities; its gradient is that of the mean cross-entropy. Sub-operators only."""

    def forward(self, is_train, req, in_data, out_data, aux):
        scores = in_data[0]
        largest = mx.nd.max(scores, axis=1, keepdims=True)
        weights = mx.nd.exp(mx.nd.broadcast_sub(scores, largest))
        total = mx.nd.sum(weights, axis=1, keepdims=True)
        self.assign(out_data[0], req[0], mx.nd.broadcast_div(weights, total))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        count, classes = out_data[0].shape
        truth = mx.nd.one_hot(in_data[1], classes)
        self.assign(in_grad[0], req[0], (out_data[0] - truth) / float(count))
        self.assign(in_grad[1], req[1], mx.nd.zeros(in_data[1].shape))


@mx.operator.register("SoftmaxLoss")
class SoftmaxLossProp(mx.operator.CustomOpProp):
    def __init__(self):
        # It needs none, but MXNet 1.9.1 fails when told so behind an operator like Head.
        super().__init__(need_top_grad=True)

    def list_arguments(self):
        return ["scores", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], (in_shape[0][0],)], [in_shape[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        return SoftmaxLoss()


class Head(mx.operator.CustomOp):
    """An operator that calls another custom operator: centre, then double."""

    def forward(self, is_train, req, in_data, out_data, aux):
        inside = mx.nd.Custom(in_data[0], aux[0], op_type="Centre", momentum=0.8)
        self.assign(out_data[0], req[0], inside * 2.0)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0] * 2.0)


@mx.operator.register("Head")
class HeadProp(mx.operator.CustomOpProp):
    def __init__(self):
        super().__init__(need_top_grad=True)

    def list_auxiliary_states(self):
        return ["mean"]

    def infer_shape(self, in_shape):
        return in_shape, [in_shape[0]], [(1, in_shape[0][1])]

    def create_operator(self, ctx, shapes, dtypes):
        return Head()


def train(passes=2, classes=3):
    """Two passes whose gradients add up; returns every array that came out, as NumPy."""
    random = np.random.RandomState(2019)
    features = mx.nd.array(random.normal(0, 1, (2, 4, 12, 12)).astype(np.float32))
    boxes = [[0, 0, 0, 9, 9], [0, 2, 3, 11, 8], [1, 1, 1, 6, 11], [1, 4, 0, 11, 5], [0, 5, 5, 7, 7]]
    rois = mx.nd.array(np.array(boxes, np.float32))
    label = mx.nd.array(np.array([0, 1, 2, 1, 0], np.float32))
    weight = mx.nd.array(random.normal(0, 0.3, (16, classes)).astype(np.float32))
    mean, head_mean = mx.nd.zeros((1, 16)), mx.nd.zeros((1, classes))
    features.attach_grad(grad_req="add")
    weight.attach_grad(grad_req="add")
    for _ in range(passes):
        with mx.autograd.record():
            pooled = mx.nd.Custom(features, rois, op_type="RoIPool", size=2, scale=1.0)[0]
            flat = pooled.reshape((5, 16))
            centred = mx.nd.Custom(flat, mean, op_type="Centre", momentum=0.9)
            scores = mx.nd.Custom(mx.nd.dot(centred, weight), head_mean, op_type="Head")
            found = mx.nd.Custom(scores, label, op_type="SoftmaxLoss")
        found.backward()
    mx.nd.waitall()
    return {
        "probabilities": found.asnumpy(),
        "pooled": pooled.asnumpy(),
        "mean": mean.asnumpy(),
        "head mean": head_mean.asnumpy(),
        "gradient of the weight": weight.grad.asnumpy(),
        "gradient of the features": features.grad.asnumpy(),
    }


if __name__ == "__main__":
    for name, array in train().items():
        print(f"{name:26} {array.shape!s:16} sum {array.sum():+.6f}")
