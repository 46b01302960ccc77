"""`dumps`: what it counts, how it nests, its sums, its order, `reset`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.compat.mxnet import programs
from tests.compat.mxnet.conftest import Profiled

import opscope.compat.mxnet as mx
from opscope.compat.mxnet import profiler
from opscope.model import Kind

CUSTOM = "Custom Operator"


def test_plain_operators_are_counted_once(kind: str, profiled: Profiled) -> None:
    x = mx.nd.ones((2, 3))
    profiled.run()
    y = mx.nd.sqrt(x)
    z = mx.nd._internal._plus_scalar(y, scalar=1)
    mx.nd._internal._plus_scalar(z, scalar=1, out=z)
    profiled.stop()
    assert profiled.counts("operator") == {"sqrt": 1, "_plus_scalar": 2}
    assert CUSTOM not in profiled.time()
    profiler.dump()
    assert [profiled.count("sqrt"), profiled.count("_plus_scalar")] == [1, 2]


def test_arithmetic_has_the_names_it_has_in_mxnet(profiled: Profiled) -> None:
    x, row = mx.nd.ones((2, 3)), mx.nd.ones((1, 3))
    profiled.run()
    x - x * x / (x + row)
    mx.nd.maximum(x, x) + mx.nd.minimum(2, x)
    x += x
    profiled.stop()
    assert profiled.counts("operator") == {
        "broadcast_add": 3,
        "broadcast_sub": 1,
        "broadcast_mul": 1,
        "broadcast_div": 1,
        "broadcast_maximum": 1,
        "_minimum_scalar": 1,
    }
    assert [mx.nd.maximum(1, 2), mx.nd.minimum(1, 2), mx.nd.logical_xor(1, 2)] == [2, 1, False]


def test_a_custom_operator_forward_and_backward(kind: str, profiled: Profiled) -> None:
    x = mx.nd.array([[0, 1], [2, 3]])
    x.attach_grad()
    profiled.run()
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="MySigmoid")
    y.backward()
    profiled.stop()
    counts = profiled.counts(CUSTOM)
    waits = {"MySigmoid::wait", "_backward_MySigmoid::wait"}  # how many is up to the scheduler
    assert {name: n for name, n in counts.items() if name not in waits} == {
        "MySigmoid": 1,
        "MySigmoid::pure_python": 1,
        "MySigmoid::dispatch": 1,
        "MySigmoid::_zeros": 1,
        "MySigmoid::_copyto": 1,
        "_backward_MySigmoid": 1,
        "_backward_MySigmoid::pure_python": 1,
        "_backward_MySigmoid::dispatch": 1,
        "_backward_MySigmoid::_copyto": 1,
    }
    assert not any("MySigmoid" in name for name in profiled.counts("operator"))
    sigmoid = 1 / (1 + np.exp(-np.array([[0, 1], [2, 3]])))
    np.testing.assert_allclose(x.grad.asnumpy(), sigmoid * (1 - sigmoid), rtol=1e-6)


def test_two_operators_side_by_side(kind: str, profiled: Profiled) -> None:
    x = mx.nd.zeros((3, 3))
    mx.nd.waitall()
    profiled.run()
    for _ in range(4):
        a = mx.nd.Custom(x, op_type="MyAdd1")
        b = mx.nd.Custom(x, op_type="MyAdd2")
        c = x + 5
    profiled.stop()
    for name, calls, subs in (("MyAdd1", 4, 4), ("MyAdd2", 4, 8)):
        counts = profiled.counts(CUSTOM)
        assert counts[name] == counts[f"{name}::pure_python"] == calls
        assert counts[f"{name}::_plus_scalar"] == subs
    assert profiled.counts("operator") == {"_plus_scalar": 4}
    assert [int(one[0, 0].asscalar()) for one in (a, b, c)] == [1, 2, 5]


def test_nested_operators_keep_their_path(kind: str, profiled: Profiled) -> None:
    x = mx.nd.zeros((2,))
    profiled.run()
    y = mx.nd.Custom(x, op_type="Outer")
    z = mx.nd.Custom(x, op_type="Inner")
    profiled.stop()
    counts = profiled.counts(CUSTOM)
    assert counts["Outer"] == counts["Outer::pure_python"] == 1
    assert counts["Outer::Inner"] == counts["Outer::Inner::pure_python"] == 1
    assert counts["Outer::Inner::_plus_scalar"] == 3
    assert counts["Outer::_mul_scalar"] == 1
    assert counts["Inner"] == 1
    assert counts["Inner::_plus_scalar"] == 3
    assert [y.asnumpy().tolist(), z.asnumpy().tolist()] == [[6, 6], [3, 3]]


def test_a_failed_call_is_counted_and_taints_nothing(kind: str, profiled: Profiled) -> None:
    x = mx.nd.zeros((2,))
    profiled.run()
    for _ in range(3):
        y = mx.nd.Custom(x, op_type="Bad")
        with pytest.raises(mx.base.MXNetError, match="no such luck"):
            y.wait_to_read()
    for _ in range(5):
        x = x + 1
    profiled.stop()
    counts = profiled.counts(CUSTOM)
    assert counts["Bad"] == counts["Bad::pure_python"] == counts["Bad::_plus_scalar"] == 3
    assert profiled.counts("operator")["_plus_scalar"] == 5


def test_totals_are_the_sums_of_the_spans(kind: str, profiled: Profiled) -> None:
    profiled.run()
    for _ in range(5):
        mx.nd.Custom(mx.nd.zeros((4,)), op_type="MySigmoid").wait_to_read()
    profiled.stop()
    session = profiler.recording.session()
    rows = profiled.time()[CUSTOM]
    spans = session.spans
    for name, sort in (("MySigmoid", Kind.CALL), ("MySigmoid::_zeros", Kind.OP)):
        text = name.rpartition("::")[2]
        chosen = (spans["kind"] == sort) & (spans["name"] == _index(session.names, spans, text))
        if sort == Kind.OP:
            chosen &= spans["owner"] != 0
        lengths = (spans["end_ns"] - spans["start_ns"])[chosen].tolist()
        row = rows[name]
        assert row["Count"] == len(lengths) == 5
        assert round(row["Total"] * 1e6) == sum(lengths)
        assert round(row["Min"] * 1e6) == min(lengths)
        assert round(row["Max"] * 1e6) == max(lengths)
        assert row["Avg"] == pytest.approx(sum(lengths) / 5 / 1e6)


def _index(names: tuple[str, ...], spans: Any, text: str) -> int:
    (found,) = {i for i in set(spans["name"].tolist()) if names[i] == text}
    return int(found)


def test_the_parts_of_a_naive_call_are_the_whole(profiled: Profiled) -> None:
    from opscope import engine

    engine.use("naive")
    try:
        profiled.run()
        mx.nd.Custom(mx.nd.zeros((4,)), op_type="MySigmoid").wait_to_read()
        profiled.stop()
    finally:
        engine.use()
    total = {name: round(row["Total"] * 1e6) for name, row in profiled.time()[CUSTOM].items()}
    whole = total.pop("MySigmoid")
    chores = profiled.time().get("runtime", {})
    assert sum(total.values()) <= whole
    assert whole - sum(total.values()) <= sum(round(row["Total"] * 1e6) for row in chores.values())


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("sort_by", ["total", "avg", "min", "max", "count"])
def test_rows_are_sorted_within_each_domain(
    sort_by: str, ascending: bool, profiled: Profiled
) -> None:
    profiled.run()
    domain = profiler.Domain("mine")
    counters = [domain.new_counter(f"c{n}", n % 3) for n in range(4)]
    counters[1] += 5
    for n in range(6):
        mx.nd.Custom(mx.nd.zeros((50 * n + 1, 50)), op_type="MyAdd1" if n % 2 else "MyAdd2")
    profiled.stop()
    table = profiled.time(sort_by=sort_by, ascending=ascending)
    assert table.keys() >= {CUSTOM, "operator", "mine"}
    assert list(table) == sorted(table)
    for rows in table.values():
        values = [row[sort_by.capitalize()] for row in rows.values()]
        assert values == sorted(values, reverse=not ascending)


def test_the_text_has_the_same_numbers_in_the_same_order(profiled: Profiled) -> None:
    profiled.run()
    for name in ("MyAdd1", "MyAdd2"):
        mx.nd.Custom(mx.nd.zeros((3,)), op_type=name)
    profiled.stop()
    text = profiler.dumps(sort_by="count", ascending=True)
    found: dict[str, list[tuple[str, int, float]]] = {}
    domain, before = "", ""
    for line in text.splitlines():
        if re.fullmatch("=+", line):
            domain = before
        row = re.fullmatch(r"(\S+) +(\d+) +(\d+\.\d{4})( +\d+\.\d{4}){3}", line)
        if row:
            found.setdefault(domain, []).append((row[1], int(row[2]), float(row[3])))
        before = line
    wanted = profiled.time(sort_by="count", ascending=True)
    assert found == {
        domain: [(name, row["Count"], round(row["Total"], 4)) for name, row in rows.items()]
        for domain, rows in wanted.items()
    }
    assert "Time (ms)" in text


def test_a_table_consumes_nothing_and_reset_only_the_table(profiled: Profiled) -> None:
    x = mx.nd.ones((2,))
    profiled.run()
    for _ in range(3):
        mx.nd.sqrt(x)
    mx.nd.waitall()
    assert profiled.counts("operator")["sqrt"] == 3
    assert profiled.counts("operator", reset=True)["sqrt"] == 3
    assert "sqrt" not in profiled.counts("operator")
    for _ in range(2):
        mx.nd.sqrt(x)
    profiled.stop()
    assert profiled.counts("operator")["sqrt"] == 2
    profiler.dump()
    assert profiled.count("sqrt") == 5


def test_reset_counts_what_was_under_way_when_it_ends(profiled: Profiled) -> None:
    seen: list[dict[str, int]] = []

    class Looks(mx.operator.CustomOp):
        def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
            seen.append(profiled.counts(CUSTOM, reset=True))

    programs.register("Looks", Looks)
    profiled.run()
    mx.nd.Custom(mx.nd.zeros((1,)), op_type="Looks").wait_to_read()
    profiled.stop()
    assert seen[0]["Looks"] == 1
    assert profiled.counts(CUSTOM)["Looks"] == 1
    assert profiled.time()[CUSTOM]["Looks"]["Min"] is not None


def test_operators_that_read_the_same_are_told_apart(profiled: Profiled) -> None:
    programs.register("_backward_MyAdd1", programs.add(2))
    programs.register("Twice", programs.add(1))
    x = mx.nd.zeros((2,))
    x.attach_grad()
    profiled.run()
    mx.nd.Custom(x, op_type="_backward_MyAdd1")
    with mx.autograd.record():
        y = mx.nd.Custom(x, op_type="MyAdd1")
    y.backward()
    mx.nd.Custom(x, op_type="Twice")
    programs.register("Twice", programs.add(3))
    mx.nd.Custom(x, op_type="Twice")
    profiled.stop()
    counts = profiled.counts(CUSTOM)
    same = [name for name in counts if name.startswith("_backward_MyAdd1::pure_python")]
    assert len(same) == 2
    assert [counts[name] for name in same] == [1, 1]
    twice = [counts[name] for name in counts if name.startswith("Twice::_plus_scalar")]
    assert sorted(twice) == [1, 3]


@pytest.mark.parametrize("name", ["Custom", "A::B", 'qu"ote\\', "💡" * 90, "operator"])
def test_any_name_of_an_operator_works(name: str, profiled: Profiled) -> None:
    programs.register(name, programs.add(2))
    profiled.run()
    mx.nd.Custom(mx.nd.zeros((2,)), op_type=name)
    profiled.stop()
    assert profiled.counts(CUSTOM)[f"{name}::_plus_scalar"] == 2
    profiler.dump()
    assert profiled.count(f"{name}::_plus_scalar") == 2


def test_nothing_recorded_is_an_empty_table(profiled: Profiled) -> None:
    assert profiled.time() == {}
    assert "Profile Statistics" in profiler.dumps()


@pytest.mark.parametrize(
    "how", [{"format": "xml"}, {"sort_by": "name"}, {"ascending": 3}, {"reset": "yes"}]
)
def test_unknown_wishes_are_refused(how: dict[str, Any], profiled: Profiled) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(how))} is one of"):
        profiler.dumps(**how)
