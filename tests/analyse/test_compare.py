"""The comparison of runs: what matches what, what is judged, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analyse.runs import Did, made
from tests.builders import op, session, span

from opscope.analyse.compare import Change, Comparison, compare, regressions
from opscope.analyse.compare_noise import interval
from opscope.errors import UsageError
from opscope.model import Flag, Kind, Op, Phase, Session, Sight

#: What five runs of the same thing took: the spread is 2 % or so.
FIVE = (1000, 1020, 990, 1010, 980)


def flat(name: str | Op, value: int, calls: int = 8, **more: Any) -> Did:
    return Did(name, [value] * calls, **more)


def of(comparison: Comparison, path: str, part: str = "python") -> Change:
    (found,) = (
        change
        for change in comparison.changes
        if ("::".join(change.path), change.part) == (path, part)
    )
    return found


def five(factor: float = 1.0, *, first: int = 0, **more: Any) -> list[Session]:
    return [
        made(flat("f", int(value * factor)), at=first + 2 * place, **more)
        for place, value in enumerate(FIVE)
    ]


def marks(comparison: Comparison) -> set[tuple[str, str, str | None]]:
    return {("::".join(change.path), change.part, change.verdict) for change in comparison.marked}


def test_a_change_beyond_the_noise_is_marked() -> None:
    found = compare(five(), five(1.3, first=1))
    assert marks(found) == {("f", "python", "slower")}
    change = of(found, "f")
    assert (change.base_ns, change.new_ns, change.diff_ns) == (1000, 1300, 300)
    assert change.ratio == pytest.approx(1.3)
    assert change.low_ns is not None
    assert change.high_ns is not None
    assert 0 < change.low_ns < 300 < change.high_ns
    assert (change.base_runs, change.new_runs, change.base_calls) == (5, 5, 8)
    assert (found.tests, found.notes) == (1, ())
    assert marks(compare(five(1.3), five(first=1))) == {("f", "python", "faster")}


def test_what_equal_runs_differ_by_is_noise() -> None:
    found = of(compare(five(), five(1.02, first=1)), "f")
    assert found.verdict == "noise"
    assert found.low_ns is not None
    assert found.high_ns is not None
    assert found.low_ns < 0 < found.high_ns


def test_the_wall_time_follows_and_is_not_judged() -> None:
    found = compare(five(), five(1.3, first=1))
    assert of(found, "f", "wall").verdict is None
    assert of(found, "f", "wall").diff_ns == 300
    asked = compare(five(), five(1.3, first=1), judged=["wall"])
    assert marks(asked) == {("f", "wall", "slower")}


def test_parts_add_up() -> None:
    def run(value: int, at: int) -> Session:
        return made(flat("g", value, wait=[value // 2] * 8, inner=(flat("h", 77),)), at=at)

    found = compare([run(v, 0) for v in FIVE], [run(v, 1) for v in FIVE])
    for row in found.rows:
        wall, *parts = (change.new_ns for change in row)
        assert wall == sum(part or 0 for part in parts)
    assert of(found, "g", "nested").new_ns == 77
    assert of(found, "g", "sub").new_ns == 0
    assert of(found, "g::h", "wall").new_ns == 77


def test_an_inner_operator_that_changed_is_told_once() -> None:
    def run(inner: int, at: int) -> Session:
        return made(flat("outer", 5000, inner=(flat("inner", inner),)), at=at)

    found = compare([run(v, 0) for v in FIVE], [run(2 * v, 1) for v in FIVE])
    assert marks(found) == {("outer::inner", "python", "slower")}
    assert of(found, "outer", "nested").diff_ns == 1000
    assert of(found, "outer", "wall").diff_ns == 1000


def test_sub_operators_of_no_row_are_judged() -> None:
    def run(value: int, at: int) -> Session:
        lines = []
        for number in range(8):
            start, me = 10_000 * number, 2 * number + 1
            lines.append(span(me, "f", Kind.CALL, start, start + 100 + value))
            lines.append(span(me + 1, "mul", Kind.OP, start + 50, start + 50 + value, owner=me))
        return session(lines)

    found = compare([run(v, 0) for v in FIVE], [run(2 * v, 1) for v in FIVE])
    assert marks(found) == {("f", "sub", "slower")}


def test_the_error_is_shared_out_over_all_that_is_judged() -> None:
    for count in (1, 4):
        names = [f"f{number}" for number in range(count)]
        sides = [
            [made(*(flat(name, int(value * factor)) for name in names)) for value in FIVE]
            for factor in (1.0, 1.05)
        ]
        found = compare(*sides)
        assert found.tests == count
        change = of(found, "f0")
        values = [[int(value * factor) for value in FIVE] for factor in (1.0, 1.05)]
        _, low, high = interval(*values, 0.05 / count)
        assert (change.low_ns, change.high_ns) == (round(low), round(high))


def test_with_few_runs_small_changes_are_not_comparable() -> None:
    for count in (1, 2, 4):
        same = compare(five()[:count], five(1.25, first=1)[:count])
        assert of(same, "f").verdict == "not comparable"
        assert (same.tests, marks(same)) == (0, set())
        assert "too few" in same.notes[0]
        plain = compare(five()[:count], five(1.5, first=1)[:count])
        assert marks(plain) == {("f", "python", "slower")}
        assert of(plain, "f").low_ns is None
    assert marks(compare(five()[:4], five(1.25, first=1))) == set()


def test_with_few_runs_one_odd_call_is_no_change() -> None:
    odd = [1000] * 30 + [40_000]
    found = compare([made(Did("f", [1000] * 31))], [made(Did("f", odd))])
    assert (of(found, "f").ratio or 0) > 2
    assert of(found, "f").verdict == "not comparable"


def test_with_few_runs_all_must_agree() -> None:
    base = [made(flat("f", value)) for value in (1000, 2000)]
    new = [made(flat("f", value)) for value in (1500, 3000)]
    assert of(compare(base, new), "f").verdict == "not comparable"


def test_specks_are_not_judged() -> None:
    def run(wait: int, at: int) -> Session:
        return made(flat("f", 1_000_000, wait=[wait] * 8), at=at)

    found = compare([run(v // 100, 0) for v in FIVE], [run(v, 1) for v in FIVE])
    assert of(found, "f", "wait").verdict == "small"
    assert found.tests == 1


def test_a_difference_must_be_worth_it() -> None:
    found = compare(five(), five(1.3, first=1), min_effect_ns=301)
    assert (marks(found), of(found, "f").verdict) == (set(), "noise")
    assert marks(compare(five(), five(1.3, first=1), min_effect_ns=300))
    steady = [made(flat("f", 1000)) for _ in range(5)]
    little = [made(flat("f", 1001)) for _ in range(5)]
    assert marks(compare(steady, little)) == set()
    more = [made(flat("f", 1030)) for _ in range(5)]
    assert marks(compare(steady, more)) == {("f", "python", "slower")}


def test_the_first_call_stays_out_where_there_are_others() -> None:
    base = [made(Did("f", [value] * 8)) for value in FIVE]
    new = [made(Did("f", [value * 90] + [value] * 7)) for value in FIVE]
    assert marks(compare(base, new)) == set()
    assert of(compare(base, new), "f").diff_ns == 0
    once = [made(Did("f", [value])) for value in FIVE]
    dear = [made(Did("f", [value * 3])) for value in FIVE]
    assert marks(compare(once, dear)) == {("f", "python", "slower")}


def test_calls_that_did_not_end_count_and_say_nothing_of_times() -> None:
    lines = [span(n, "f", Kind.CALL, n * 1000, n * 1000 + 100) for n in range(1, 7)]
    lines.append(span(7, "f", Kind.CALL, 7000, 90_000, flags=int(Flag.INCOMPLETE)))
    found = compare([session(lines)], [session(lines)])
    assert (of(found, "f").base_calls, of(found, "f").base_ns) == (7, 100)
    only = session([span(1, "f", Kind.CALL, 0, 90_000, flags=int(Flag.INCOMPLETE))])
    found = compare([only], [only])
    assert (of(found, "f").base_ns, of(found, "f").verdict) == (None, None)


def test_what_appeared_and_what_is_gone() -> None:
    both = flat("f", 1000)
    found = compare([made(both, flat("old", 500))], [made(both, flat("young", 800))])
    assert of(found, "old").verdict == "gone"
    assert (of(found, "old").new_ns, of(found, "old").new_runs) == (None, 0)
    assert of(found, "young").verdict == "new"
    assert of(found, "young").diff_ns is None
    assert [row[0].op for row in found.rows] == ["f", "young", "old"]
    assert marks(found) == set()


def test_phases_are_compared_apart() -> None:
    def run(backward: int) -> Session:
        forward = [
            span(n, "f", Kind.CALL, n * 9000, n * 9000 + 100, phase=Phase.FORWARD)
            for n in range(1, 9)
        ]
        after = [
            span(20 + n, "f", Kind.CALL, (20 + n) * 9000, (20 + n) * 9000 + backward,
                 phase=Phase.BACKWARD) for n in range(8)]  # fmt: skip
        return session(forward + after)

    found = compare([run(v) for v in FIVE], [run(2 * v) for v in FIVE])
    assert [(change.phase, change.part) for change in found.marked] == [("backward", "python")]


def test_another_registration_number_is_the_same_operator() -> None:
    first, second = op("f", qualified="m.f"), op("f", qualified="m.f", registration=2)
    found = compare([made(flat(first, 100))], [made(flat(second, 100))])
    assert of(found, "f").verdict == "not comparable"
    # ... but not where a run has both.
    two = compare([made(flat(first, 100), flat(second, 900))], [made(flat(second, 900))])
    assert {change.verdict for change in two.changes if change.part == "wall"} == {None, "gone"}
    assert [c.base_ns for c in two.changes if c.part == "wall" and c.verdict is None] == [900]


def test_where_names_on_show_are_the_same_the_operator_decides() -> None:
    mine, other = op("f", qualified="m.f"), op("f", qualified="k.f")
    again = op("f", qualified="m.f", registration=2)
    found = compare([made(flat(mine, 100), flat(other, 900))], [made(flat(again, 100))])
    walls = {change.base_ns: change.verdict for change in found.changes if change.part == "wall"}
    assert walls == {100: None, 900: "gone"}


def test_what_may_be_either_of_two_is_neither() -> None:
    one, two, three = (op("f", qualified="m.f", registration=n) for n in (1, 2, 3))
    found = compare([made(flat(one, 100), flat(two, 900))], [made(flat(three, 500))])
    walls = [change for change in found.changes if change.part == "wall"]
    assert sorted(str(change.verdict) for change in walls) == ["gone", "gone", "new"]


def test_a_foreign_trace_meets_its_recording_by_name() -> None:
    ours = op("ns::f", host="torch", qualified="ns::f")
    theirs = op("ns::f", host="kineto", kind="cpu_op")
    found = compare([made(flat(theirs, 100))], [made(flat(ours, 100))])
    assert len(found.rows) == 1
    assert of(found, "ns::f").key == ours.key
    assert len(compare([made(flat(op("g"), 100))], [made(flat(ours, 100))]).rows) == 2


def test_the_same_operator_elsewhere_is_another_row() -> None:
    inside = made(flat("outer", 500, inner=(flat("f", 100),)))
    found = compare([inside], [made(flat("f", 100))])
    assert {(change.path, change.verdict) for change in found.changes if change.part == "wall"} == {
        (("outer",), "gone"),
        (("outer", "f"), "gone"),
        (("f",), "new"),
    }


def test_what_one_side_did_not_measure_is_not_compared() -> None:
    def run(value: int, **more: Any) -> Session:
        return session([span(n, "f", Kind.CALL, 9000 * n, 9000 * n + value) for n in range(8)],
                       **more)  # fmt: skip

    found = compare([run(v) for v in FIVE], [run(v, sight=[Sight("python")]) for v in FIVE])
    assert (of(found, "f").new_ns, of(found, "f").ratio, of(found, "f").verdict) == (None,) * 3
    assert of(found, "f", "untracked").base_ns == 0
    assert marks(found) == {("f", "untracked", "slower")}


@pytest.mark.parametrize(
    ("base", "new", "said"),
    [
        ((0, 2, 4, 6, 8), (1, 3, 5, 7, 9), ""),
        ((0, 3, 4, 7, 8), (1, 2, 5, 6, 9), ""),
        ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9), "the base runs were made before the new ones"),
        ((5, 6, 7, 8, 9), (0, 1, 2, 3, 4), "the new runs were made before the base ones"),
        ((0, 1, 2, 3, 5), (4, 6, 7, 8, 9), "not in alternation"),
        ((0, 2, 4, 6, None), (1, 3, 5, 7, 9), "is not known"),
    ],
)
def test_it_says_when_the_runs_did_not_alternate(
    base: tuple[int | None, ...], new: tuple[int | None, ...], said: str
) -> None:
    sides = [[made(flat("f", 1000), at=at) for at in side] for side in (base, new)]
    notes = compare(*sides).notes
    assert len(notes) == bool(said)
    assert said in "".join(notes)


def test_it_says_what_else_differs() -> None:
    other = five(first=1, machine="n", versions={"torch": "2.9"}, complete=False)
    notes = compare(five(versions={"torch": "2.8"}), other).notes
    assert notes == (
        "base and new are of different machines (or boots): m against n",
        "base and new are of different versions: torch 2.8 against torch 2.9",
        "5 of 5 new runs are cut short, or spans were lost",
    )


def test_operators_are_chosen_by_name() -> None:
    both = [made(flat("big", 5000), flat("f", value)) for value in FIVE]
    found = compare(both, both, op=["b*"])
    assert [row[0].op for row in found.rows] == ["big"]
    assert found.tests == 1


def test_impossible_questions() -> None:
    with pytest.raises(UsageError, match="no part is called 'speed'"):
        compare(five(), five(), judged=["speed"])
    with pytest.raises(UsageError, match="at least one run"):
        compare([], five())


def test_sessions_are_taken_one_by_one() -> None:
    found = compare((run for run in five()), iter(five(first=1)))
    assert (found.base_runs, found.new_runs) == (5, 5)


def test_regressions_are_above_what_is_let_pass() -> None:
    found = compare(five(), five(1.3, first=1))
    assert [change.part for change in regressions(found, 0.1)] == ["python"]
    assert regressions(found, 0.31) == ()
    assert regressions(compare(five(1.3), five(first=1)), 0.1) == ()


def test_time_that_went_from_one_part_to_another_is_no_regression() -> None:
    def run(python: int, wait: int) -> Session:
        return made(flat("f", python, wait=[wait] * 8))

    found = compare([run(v, 3 * v) for v in FIVE], [run(3 * v, v) for v in FIVE])
    assert {change.part for change in found.marked} == {"python", "wait"}
    assert regressions(found, 0.1) == ()
    assert [change.part for change in regressions(found, 0.1, shifts=False)] == ["python"]
