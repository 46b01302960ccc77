"""Arrays: creation, indexing, writing in place, and mixing with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from opscope import engine as nd


def test_creation(any_kind: str) -> None:
    assert nd.zeros((2, 3)).asnumpy().tolist() == [[0] * 3] * 2
    assert nd.ones(2, dtype="int64").asnumpy().dtype == np.int64
    assert nd.full((1, 2), 7.5).asnumpy().tolist() == [[7.5, 7.5]]
    assert nd.arange(3).asnumpy().tolist() == [0, 1, 2]
    assert nd.arange(1, 2, 0.5).asnumpy().tolist() == [1, 1.5]
    assert nd.array([1, 2]).dtype == np.float32
    assert nd.array(np.arange(3)).dtype == np.int64
    assert nd.array(nd.ones(2) + 1).asnumpy().tolist() == [2, 2]
    assert nd.empty(3).asnumpy().tolist() == [0, 0, 0]
    assert nd.zeros_like(nd.ones((2, 1))).shape == nd.ones_like(nd.zeros((2, 1))).shape == (2, 1)
    with pytest.raises(TypeError, match="numbers"):
        nd.array(np.array([1j]))


def test_source_is_copied() -> None:
    source = np.ones(2)
    a = nd.array(source)
    source[:] = 5
    copy = a.asnumpy()
    copy[:] = 7
    assert a.asnumpy().tolist() == [1, 1]


def test_results_never_share_elements(any_kind: str) -> None:
    a = nd.array(np.arange(6.0).reshape(2, 3))
    views = [a.T, a.reshape(3, 2), a[0:2], a[...], nd.broadcast_to(a, (2, 3)), a.copy(), a * 1]
    a[:] = -1
    for view in views:
        assert sorted(view.asnumpy().ravel()) == [0, 1, 2, 3, 4, 5]


def test_in_place_keeps_the_storage(any_kind: str) -> None:
    a = nd.ones((2, 2))
    same, storage = a, a.storage
    a += 1
    a *= nd.full((2, 2), 3)
    a -= nd.ones(2)
    a /= 5
    assert a is same
    assert a.storage is storage
    assert same.asnumpy().tolist() == [[1, 1], [1, 1]]
    whole = nd.array([3, 4], dtype="int32")
    whole += 1.5  # computed as floats, kept as what it is
    assert whole.asnumpy().tolist() == [4, 5]
    assert whole.dtype == np.int32
    a += a
    assert a.asnumpy().tolist() == [[2, 2], [2, 2]]


def test_writing_parts(any_kind: str) -> None:
    a = nd.zeros((3, 3))
    a[1] = 5
    a[0, 1:] = np.array([7, 8])
    a[2:3] = nd.ones((1, 3))
    assert a.asnumpy().tolist() == [[0, 7, 8], [5, 5, 5], [1, 1, 1]]
    a[:] = 2
    assert a.asnumpy().tolist() == [[2] * 3] * 3
    a[:] = nd.arange(3)
    assert a[1].asnumpy().tolist() == [0, 1, 2]
    a[0:1] += 10
    assert a[0].asnumpy().tolist() == [10, 11, 12]
    fresh = nd.empty((2, 2))
    fresh[0] = 1  # nothing was written before: the rest is zeros
    assert fresh.asnumpy().tolist() == [[1, 1], [0, 0]]


def test_writing_parts_from_sources_with_more_axes(any_kind: str) -> None:
    a = nd.zeros((2, 3))
    a[0] = nd.array([[[1, 2, 3]]])
    a[1, 0] = nd.array([7])
    a[1:, 1:] = np.array([[[8, 9]]])
    assert a.asnumpy().tolist() == [[1, 2, 3], [7, 8, 9]]
    for source in (nd.zeros((2, 1, 3)), nd.zeros((1, 2))):
        with pytest.raises(nd.ShapeError, match="does not fit"):
            a[0] = source


def test_indices_of_other_kinds(any_kind: str) -> None:
    value = np.arange(12.0).reshape(4, 3)
    a, picked = nd.array(value), np.array([3, 0, 3])
    for key in (np.int64(2), np.array(2), (np.int32(1), slice(None)), (np.int64(-1), np.uint8(1))):
        assert a[key].asnumpy().tolist() == value[key].tolist()
    for key in (picked, picked.tolist(), nd.array(picked), nd.array(picked, "float32")):
        assert a[key].asnumpy().tolist() == value[picked].tolist()
        assert a[key, [0, 1, 2]].asnumpy().tolist() == value[picked, [0, 1, 2]].tolist()
        assert a[1:, [0, 2]].asnumpy().tolist() == value[1:, [0, 2]].tolist()
        b = a.copy()
        b[key] = nd.array([[1], [2], [2]])
        b[nd.array([1, 2]), -1] = 5
        assert b.asnumpy().tolist() == [[2, 2, 2], [3, 4, 5], [6, 7, 5], [2, 2, 2]]
    later = a[picked]
    picked[:] = 9  # a key is what it was at the call
    assert later.asnumpy().tolist() == value[[3, 0, 3]].tolist()
    for bad in ([4], nd.array([-5]), np.int64(4)):
        with pytest.raises(IndexError):
            a[bad]
    for key in ("x", 1.5, [0.5, "x"], [True, False], np.array([True]), {}):
        with pytest.raises(nd.ShapeError, match="indexed by integers"):
            a[key]


def test_gradients_of_indices_that_repeat_add_up(any_kind: str) -> None:
    a = nd.zeros((3, 2))
    a.attach_grad()
    with nd.autograd.record():
        b = a[[0, 0, 2]] * 2 + a[nd.array([0, 1, 1]), nd.array([1, 0, 0])].reshape(3, 1)
    b.backward()
    assert a.grad is not None
    assert a.grad.asnumpy().tolist() == [[4, 6], [4, 0], [2, 2]]


def test_methods_fold_as_the_functions_do(any_kind: str) -> None:
    a, out = nd.array([[1, 2, 3], [4, 5, 6]]), nd.empty(2)
    assert a.sum(axis=0, exclude=True).asnumpy().tolist() == [6, 15]
    assert a.mean(1, True, False, out.reshape(2, 1)).shape == (2, 1)
    assert a.max(axis=1, out=out) is out
    assert out.asnumpy().tolist() == [3, 6]
    assert a.sum(axis=()).asnumpy().tolist() == nd.sum(a, axis=[]).asnumpy().tolist() == [21]


def test_reading_parts_and_iterating() -> None:
    a = nd.array(np.arange(6).reshape(3, 2))
    assert len(a) == 3
    assert [row.asnumpy().tolist() for row in a] == [[0, 1], [2, 3], [4, 5]]
    assert a[-1, 0].asscalar() == 4
    assert a[None].shape == (1, 3, 2)
    assert float(a[1, 1]) == int(a[1, 1]) == 3
    assert bool(a[1, 1])
    with pytest.raises(nd.ShapeError):
        bool(a)
    with pytest.raises(TypeError):
        len(a[0, 0])


def test_mixing_with_numpy_gives_arrays() -> None:
    a, b = nd.array([1.0, 2.0]), np.array([3.0, 5.0], np.float32)
    for result, expected in [
        (a + b, [4, 7]),
        (b + a, [4, 7]),
        (b - a, [2, 3]),
        (a - b, [-2, -3]),
        (b / a, [3, 2.5]),
        (b > a, [1, 1]),
        (np.float32(2) * a, [2, 4]),
        (a - np.float64(1), [0, 1]),
    ]:
        assert isinstance(result, nd.Array)
        assert result.dtype == np.float32
        assert result.asnumpy().tolist() == expected


def test_comparing_with_strangers_is_not_an_error() -> None:
    a = nd.ones(1)
    assert a != None  # noqa: E711
    assert not a == "text"  # noqa: SIM201
    assert a in [a]
    assert len({a, a}) == 1


def test_looks() -> None:
    a = nd.zeros((2, 3))
    assert repr(a) == "<Array 2x3 float32>"
    assert (a.ndim, a.size, nd.zeros(()).size) == (2, 6, 1)


def test_random_is_reproducible_on_every_kind() -> None:
    seen = []
    for kind in ("threaded", "naive", "threaded"):
        nd.use(kind)
        nd.random.seed(3)
        seen.append((nd.random.normal(shape=3) + nd.random.uniform(shape=3)).asnumpy().tolist())
    assert seen[0] == seen[1] == seen[2]
    assert nd.random.uniform(2, 3, (50,)).asnumpy().min() >= 2
    nd.use()


def test_random_workload_of_arrays_equals_the_naive_result() -> None:
    def work() -> list[list[float]]:
        chance = np.random.default_rng(5)
        arrays = [nd.full((4, 4), n + 1.0, dtype="float64") for n in range(12)]
        for _ in range(800):
            a, b, c = chance.integers(0, 12, 3)
            step = chance.integers(0, 5)
            if step == 0:
                arrays[c] = nd.dot(arrays[a], arrays[b]) / 50
            elif step == 1:
                arrays[c] += arrays[a]
                arrays[c] /= 2
            elif step == 2:
                arrays[c][1:3] = arrays[a][0:2]
            elif step == 3:
                arrays[c] = nd.tanh(arrays[a] - arrays[b].T) + 1
            else:
                arrays[c] = nd.maximum(arrays[a], arrays[b]).copy()
        return [array.asnumpy().tolist() for array in arrays]

    results = []
    for kind, workers in (("naive", None), ("threaded", 1), ("threaded", 4)):
        nd.use(kind, workers=workers)
        results.append(work())
        with nd.bulk(8):
            results.append(work())
    nd.use()
    assert all(result == results[0] for result in results)


def test_views_have_their_elements_in_common(any_kind: str) -> None:
    a = nd.zeros((2, 3))
    row, flat = a.view(1), a.view_as((6,))
    row += 2
    flat.view(slice(1, 3))[:] = 5
    assert a.asnumpy().tolist() == [[0, 5, 5], [2, 2, 2]]
    nd.exp(a * 0, out=a)
    assert (row + flat.view(slice(3))).asnumpy().tolist() == [2, 2, 2]
    del a
    assert row.asnumpy().tolist() == [1, 1, 1]
    with pytest.raises(IndexError):
        flat.view(6)
    with pytest.raises(nd.ShapeError, match="do not fill"):
        flat.view_as((4,))


def test_a_view_that_is_read_waits_for_its_array(any_kind: str) -> None:
    a = nd.zeros((2, 2))
    for number in range(200):
        a += 1
        assert a.view(number % 2).asnumpy().tolist() == [number + 1] * 2
        a.view((1, slice(1))).__iadd__(0)
