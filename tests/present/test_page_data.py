"""What the page is drawn from equals the analyses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import op, session, span
from tests.present.pages import page_of

from opscope.analyse import TIME_KEYS, paths, subs, summary
from opscope.model import Flag, Kind, LinkKind, Phase, Session, Sight
from opscope.present.page.headline import Headline, figures, headline
from opscope.present.page.icicle import OWN_KEYS, icicle
from opscope.present.page.operators import operators

F, B = Phase.FORWARD, Phase.BACKWARD


@pytest.fixture
def made() -> Session:
    """Outer calls Inner twice forward, its backward calls Inner's; Alone stands beside."""
    return session(
        [
            span(1, "Outer", Kind.CALL, 0, 10_000, phase=F),
            span(2, "Inner", Kind.CALL, 1_000, 3_000, owner=1, phase=F),
            span(3, "mul", Kind.OP, 1_500, 2_500, owner=2, phase=F),
            span(4, "Inner", Kind.CALL, 4_000, 5_000, owner=1, phase=F),
            span(5, "Outer", Kind.CALL, 20_000, 26_000, phase=B),
            span(6, "Inner", Kind.CALL, 21_000, 22_000, owner=5, phase=B),
            span(7, "far", Kind.OP, 21_000, 29_000, owner=6, lane="pool", phase=B),
            span(8, "Alone", Kind.CALL, 30_000, 30_500),
            span(9, "Alone", Kind.CALL, 31_000, 31_100, flags=Flag.INCOMPLETE),
            span(10, "sleep", Kind.WAIT, 30_100, 30_300),
        ],
        links=[(LinkKind.BACKWARD, 5, 1)],
    )


def test_the_table_holds_the_phases_of_an_operator_at_one_place_together(made: Session) -> None:
    found = operators(made)
    shape = [(r["path"], r["name"], [p["phase"] for p in r["phases"]]) for r in found["rows"]]
    assert shape == [
        ([], "Outer", ["forward", "backward"]),
        (["Outer"], "Inner", ["forward", "backward"]),
        ([], "Alone", ["none"]),
    ]
    assert found["keys"] == list(TIME_KEYS)


def test_every_number_of_the_table_is_one_of_the_summary(made: Session) -> None:
    told: dict[tuple[str, str, int], Any] = {}
    for row in operators(made)["rows"]:
        for phase in row["phases"]:
            told[phase["name"], phase["phase"], phase["times"][0]] = phase
        for place, key in enumerate(TIME_KEYS):
            known = [p["times"][place] for p in row["phases"] if p["times"][place] is not None]
            assert row["times"][place] == (sum(known) if known else None), key
    rows = summary(made)
    assert len(told) == len(rows)
    for row in rows:
        phase = told[row.path[-1], row.phase, row.wall_ns]
        assert phase["times"] == [getattr(row, key) for key in TIME_KEYS]
        assert (phase["calls"], phase["mean"], phase["p50"], phase["p95"], phase["max"]) == (
            *(row.calls, row.mean_ns, row.p50_ns, row.p95_ns, row.max_ns),
        )
        inside = [sub for sub in subs(made) if sub.above == row.node]
        assert [entry[0] for entry in phase["inside"]] == [sub.name for sub in inside]
        assert [entry[3] for entry in phase["inside"]] == [sub.total_ns for sub in inside]


def test_the_slowest_calls_and_the_bins_are_of_the_calls_that_ended(made: Session) -> None:
    (alone,) = [row for row in operators(made)["rows"] if row["name"] == "Alone"]
    (phase,) = alone["phases"]
    assert phase["slowest"] == [[8, 30_000, 500, "main"]]
    assert sum(phase["counts"]) == 1
    assert alone["mean"] == alone["max"] == 500
    assert (alone["calls"], alone["incomplete"]) == (2, 1)


def test_what_is_not_measured_is_null() -> None:
    blind = session([span(1, "A", Kind.CALL, 0, 100)], sight=[Sight("python", sees=("calls",))])
    page = page_of(blind)
    (row,) = page.data("operators-data")["rows"]
    assert row["times"][TIME_KEYS.index("python_ns")] is None
    assert page.data("whole-data")["python_ns"] is None
    assert page.data("whole-data")["untracked_ns"] == 100


def test_the_data_of_the_page_is_that_of_the_functions(made: Session) -> None:
    page = page_of(made)
    assert page.data("operators-data") == operators(made)
    assert page.data("icicle-data") == icicle(made)


def test_the_costliest_are_kept_and_the_rest_is_counted() -> None:
    lines = [span(n + 1, f"op{n}", Kind.CALL, 1000 * n, 1000 * n + 1 + n) for n in range(30)]
    found = operators(session(lines), limit=10)
    assert [row["name"] for row in found["rows"]] == [f"op{n}" for n in range(29, 19, -1)]
    assert found["left_out"] == 20
    assert found["left_out_ns"] == sum(range(1, 21))


def test_the_icicle_is_the_tree_of_paths(made: Session) -> None:
    def compare(tiles: Any, nodes: Any) -> None:
        assert len(tiles) == len(nodes)
        for tile, node in zip(tiles, nodes, strict=True):
            assert (tile["name"], tile["calls"]) == (node.name, node.calls)
            assert (tile["inclusive"], tile["own_ns"]) == (node.inclusive_ns, node.own_ns)
            assert tile["width"] >= tile["own_ns"] + sum(below["width"] for below in tile["below"])
            if tile["own"]:
                assert sum(value or 0 for value in tile["own"]) == node.own_ns
            compare(tile["below"], node.children)

    found = icicle(made)
    assert found["left_out"] == 0
    assert found["own"] == list(OWN_KEYS)
    compare(found["roots"], paths(made))


def test_work_on_other_lanes_is_told_from_work_on_its_own(made: Session) -> None:
    tiles = {tile["name"]: tile for tile in _flat(icicle(made)["roots"])}
    assert tiles["mul"]["part"] == "sub"
    assert tiles["far"]["part"] == "elsewhere"
    assert tiles["Outer"]["part"] is None
    # Inner's backward took 1,000 ns, and 8,000 ns on the pool: the tile has room for both.
    assert tiles["_backward_Inner"]["width"] == 9_000


def test_equal_tiles_beyond_the_limit_are_left_out_from_the_inside() -> None:
    lines = []
    for n in range(6):
        lines.append(span(2 * n + 1, f"a{n}", Kind.CALL, 1000 * n, 1000 * n + 100))
        lines.append(span(2 * n + 2, "b", Kind.CALL, 1000 * n, 1000 * n + 100, owner=2 * n + 1))
    found = icicle(session(lines), limit=5)
    assert len(list(_flat(found["roots"]))) == 5
    assert found["left_out"] == 7
    assert all(tile["below"] for tile in found["roots"][:2])


def _flat(tiles: Any) -> Any:
    for tile in tiles:
        yield tile
        yield from _flat(tile["below"])


def test_the_headline_says_what_costs_most_and_why(made: Session) -> None:
    assert headline(made) == Headline(
        "Outer", "16.0 µs in 2 calls, 96 % of the time in custom operators",
        "75 % of that is its own Python",
    )  # fmt: skip


def test_the_headline_names_the_sub_operator_that_explains_most() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 1000),
        span(2, "small", Kind.OP, 0, 100, owner=1),
        span(3, "large", Kind.OP, 200, 900, owner=1),
    ]
    found = headline(session(lines))
    assert found == Headline(
        "A", "1.00 µs in 1 call", "80 % of that is in its sub-operators", "large"
    )


def test_the_headline_counts_an_operator_over_all_its_phases_and_no_nested_time_twice() -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 600, phase=F),
        span(2, "B", Kind.CALL, 1000, 1500, phase=F),
        span(3, "B", Kind.CALL, 2000, 2500, phase=B),
        span(4, "C", Kind.CALL, 1000, 1500, owner=2, phase=F),
    ]
    found = headline(session(lines))
    assert found.op == "B"
    assert found.costs == "1.00 µs in 2 calls, 63 % of the time in custom operators"


def test_two_operators_of_one_name_are_two() -> None:
    one, two = op("same"), op("same", registration=2)
    lines = [span(1, one, Kind.CALL, 0, 60), span(2, two, Kind.CALL, 100, 140)]
    assert headline(session(lines)).costs.endswith("60 % of the time in custom operators")
    assert len(operators(session(lines))["rows"]) == 2


@pytest.mark.parametrize(
    ("part", "words"),
    [(1, "under 1 %"), (999, "over 99 %"), (500, "50 %"), (1000, "All of that is in")],
)
def test_shares_are_never_rounded_to_nothing_or_all(part: int, words: str) -> None:
    lines = [
        span(1, "A", Kind.CALL, 0, 1000),
        span(2, "x", Kind.OP, 0, part, owner=1),
        span(3, "y", Kind.WAIT, part, 1000),
    ]
    found = headline(session(lines)).why
    assert found.startswith(words if part >= 500 else "over 99 %")


def test_the_figures(made: Session) -> None:
    told = {figure.what: (figure.value, figure.unit) for figure in figures(made)}
    assert told == {
        "recorded": ("31.1", "µs"),
        "in custom operators": ("16.6", "µs"),
        "custom operators": ("3", ""),
        "calls": ("7", ""),
        "spans": ("10", ""),
        "lanes": ("2", ""),
    }
