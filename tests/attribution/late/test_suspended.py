"""A generator or coroutine owns nothing while it is suspended."""

from __future__ import annotations

from tests.attribution.late.world import World, call, event, row

from opscope.model import Flag, Kind

FREE = World(unhooked="U V")


def asleep(id: int, owner: int, start_ns: int, end_ns: int) -> tuple[int, ...]:
    """A stretch in which the call `owner` did not run."""
    return row(id, "asleep", Kind.WAIT, start_ns, end_ns, owner=owner, flags=Flag.SUSPENDED)


def owners(rows: list[tuple[int, ...]], *starts: int) -> list[int]:
    """The owners of operators one nanosecond long that start then."""
    found = FREE.join([event("op", start, start + 1) for start in starts], rows)
    return [int(span["owner"]) for span in found.spans("op")]


def test_a_suspended_call_is_not_the_owner_of_what_runs_meanwhile() -> None:
    rows = [call(1, "G", 0, 100), asleep(2, 1, 20, 40), asleep(3, 1, 60, 80)]
    assert owners(rows, 10, 30, 50, 70, 90) == [1, 0, 1, 0, 1]


def test_what_runs_meanwhile_is_that_of_whoever_is_around_the_call() -> None:
    rows = [call(1, "A", 0, 200), call(2, "G", 10, 100, owner=1), asleep(3, 2, 20, 40)]
    assert owners(rows, 15, 30, 50, 150) == [2, 1, 2, 1]


def test_two_interleaved_calls_each_own_what_ran_in_them() -> None:
    rows = [
        *(call(1, "G", 0, 90), asleep(3, 1, 10, 20), asleep(4, 1, 30, 80)),
        *(call(2, "G", 11, 100), asleep(5, 2, 19, 40), asleep(6, 2, 50, 91)),
    ]
    assert owners(rows, 5, 15, 25, 35, 45, 60, 85, 95) == [1, 2, 1, 0, 2, 0, 1, 2]


def test_an_ordinary_wait_suspends_nobody() -> None:
    rows = [call(1, "G", 0, 100), row(2, "lock", Kind.WAIT, 20, 40, owner=1)]
    assert owners(rows, 30) == [1]


def test_a_suspension_stays_its_calls_whatever_begins_then() -> None:
    rows = [call(2, "G", 10, 100), asleep(3, 2, 20, 40)]
    events = [event("ns::U", 0, 200), event("ns::V", 20, 30)]
    found = FREE.join(events, rows)
    assert (found.owner("asleep"), found.owner("G"), found.owner("V")) == ("G", "U", "U")


def test_a_suspension_at_the_very_beginning_stays_its_calls() -> None:
    found = FREE.join([event("ns::U", 0, 200)], [call(2, "G", 10, 100), asleep(3, 2, 10, 40)])
    assert (found.owner("asleep"), found.owner("G")) == ("G", "U")


def test_who_owns_a_call_is_who_was_around_its_beginning() -> None:
    rows = [call(2, "G", 10, 100), asleep(3, 2, 10, 40)]
    found = FREE.join([event("ns::U", 0, 30), event("ns::V", 35, 200)], rows)
    assert found.owner("G") == "U"


def test_a_call_of_no_length_has_an_owner_whether_or_not_others_are_suspended() -> None:
    rows = [call(1, "A", 50, 50)]
    for more in ([], [call(2, "G", 300, 400), asleep(3, 2, 310, 320)]):
        assert FREE.join([event("ns::U", 0, 200)], rows + more).owner("A") == "U"
