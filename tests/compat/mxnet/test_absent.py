"""What is not there says so in words."""

from __future__ import annotations

from types import ModuleType

import pytest

import opscope.compat.mxnet as mx

MISSING = [
    (mx, "sym", "mx"),
    (mx, "gluon", "mx"),
    (mx.nd, "Convolution", "mx.nd"),
    (mx.nd, "sparse", "mx.nd"),
    (mx.nd._internal, "_cvimread", "mx.nd._internal"),
    (mx.profiler, "scope", "mx.profiler"),
    (mx.autograd, "get_symbol", "mx.autograd"),
    (mx.operator, "NumpyOp", "mx.operator"),
    (mx.random, "gamma", "mx.random"),
    (mx.engine, "sync", "mx.engine"),
    (mx.base, "check_call", "mx.base"),
    (mx.context, "tpu", "mx.context"),
    (mx.test_utils, "check_consistency", "mx.test_utils"),
]


@pytest.mark.parametrize(("module", "name", "shown"), MISSING)
def test_a_missing_name_is_an_attribute_error_in_words(
    module: ModuleType, name: str, shown: str
) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(module, name)
    text = str(caught.value)
    assert text.startswith(f"{shown} does not have {name!r} here")
    assert "opscope.compat.mxnet stands in for MXNet" in text
    assert not hasattr(module, name)
    there = text.partition(f"{shown} has: ")[2].split(", ")
    assert len(there) > 0
    assert set(there) <= set(dir(module))


def test_what_it_says_it_has_is_there() -> None:
    with pytest.raises(AttributeError) as caught:
        mx.nd.Convolution  # noqa: B018
    there = str(caught.value).partition("mx.nd has: ")[2].split(", ")
    assert {"zeros", "sqrt", "dot", "Custom"} <= set(there)
    for name in there:
        assert callable(getattr(mx.nd, name)) or isinstance(getattr(mx.nd, name), ModuleType)


def test_importing_what_is_missing_is_no_import_error() -> None:
    from opscope.compat.mxnet import gluon, sym
    from opscope.compat.mxnet.nd import sparse

    for module, shown in ((gluon, "mx.gluon"), (sym, "mx.sym"), (sparse, "mx.nd.sparse")):
        with pytest.raises(AttributeError, match=f"{shown} does not have 'thing' here.*nothing"):
            module.thing  # noqa: B018
    for whole, name in ((mx, "gluon"), (mx.nd, "sparse")):
        with pytest.raises(AttributeError, match=f"does not have '{name}' here"):
            getattr(whole, name)


def test_second_names_of_modules_can_be_imported() -> None:
    import opscope.compat.mxnet.ndarray as long
    from opscope.compat.mxnet.ndarray import _internal, op, zeros_like
    from opscope.compat.mxnet.ndarray.random import uniform

    assert (long, _internal, op, uniform) == (mx.nd, mx.nd._internal, mx.nd.op, mx.random.uniform)
    assert zeros_like(mx.nd.ones((2,))).asnumpy().tolist() == [0, 0]
    from opscope.compat.mxnet.ndarray import sparse

    with pytest.raises(AttributeError, match=r"mx\.nd\.sparse does not have 'thing' here"):
        sparse.thing  # noqa: B018


def test_a_missing_method_of_arrays_too() -> None:
    with pytest.raises(AttributeError, match=r"NDArray does not have 'tostype' here.*asnumpy"):
        mx.nd.ones((2,)).tostype("csr")
    assert not hasattr(mx.nd.ones((2,)), "__array__")


def test_every_name_of_the_package_is_there() -> None:
    for name in mx.__all__:
        assert getattr(mx, name) is not None
