"""`join` of any run equals the slow account of it, and keeps what must hold for all of them."""

from __future__ import annotations

from hypothesis import given, settings
from tests.attribution.late.forest import Forest, Thing, forests
from tests.attribution.late.world import FIRST_ID, Found, World

from opscope.model import Kind, LinkKind, Phase

KNOWN = World(unhooked="U V", hooked="A", functions="F", again=("CheckpointBackward",))


def of_things(forest: Forest, found: Found) -> dict[Thing, object]:
    """The span of each thing, by lane and start, which no two have in common; no dispatch."""
    every = [span for span in found.told.values() if span["kind"] != Kind.DISPATCH]
    spans = {(int(span["lane"]), int(span["start_ns"])): span for span in every}
    assert len(spans) == len(every)
    return {
        thing: spans[thing.lane, thing.start]
        for thing in forest.things
        if (thing.lane, thing.start) in spans
    }


@given(forests())
@settings(max_examples=300, deadline=None)
def test_owners_and_phases_are_those_of_the_account(forest: Forest) -> None:
    found = KNOWN.join(forest.events(), forest.rows())
    spans = of_things(forest, found)
    for thing, span in spans.items():
        owner = thing.owner()
        assert span["owner"] == (spans[owner]["id"] if owner is not None else 0), thing.text
        assert (span["kind"] == Kind.CALL) == thing.is_call, thing.text
        if thing.what not in ("gc", "step"):
            assert Phase(span["phase"]) == thing.phase(), thing.text


@given(forests())
@settings(max_examples=150, deadline=None)
def test_kernels_are_owned_like_the_runtime_calls_that_launched_them(forest: Forest) -> None:
    found = KNOWN.join(forest.events(), forest.rows())
    launches = [thing for thing in forest.things if thing.what == "launch"]
    assert len(found.links(LinkKind.LAUNCH)) == len(launches)
    assert found.joined.unattributed == 0
    for thing in launches:
        kernel, by = found.span(f"kernel {thing.number}"), found.span(thing.text)
        assert (kernel["owner"], kernel["phase"]) == (by["owner"], by["phase"])


@given(forests())
@settings(max_examples=150, deadline=None)
def test_every_event_is_one_span_or_part_of_one(forest: Forest) -> None:
    found = KNOWN.join(forest.events(), forest.rows())
    new = found.joined.rows[found.joined.rows["id"] >= FIRST_ID]
    new = new[new["kind"] != Kind.DISPATCH]
    part = sum(thing.again or thing.what in ("hooked", "function") for thing in forest.things)
    assert len(new) == len(forest.events()) - part
    assert of_things(forest, found).keys() == {thing for thing in forest.things if not thing.again}


@given(forests())
@settings(max_examples=150, deadline=None)
def test_what_holds_for_every_join(forest: Forest) -> None:
    found = KNOWN.join(forest.events(), forest.rows())
    rows = found.joined.rows
    assert len({int(span["id"]) for span in rows}) == len(rows)
    calls = {id for id, span in found.told.items() if span["kind"] == Kind.CALL}
    for span in found.told.values():
        assert span["start_ns"] <= span["end_ns"]
        assert int(span["owner"]) in calls | {0}
        assert span["owner"] != span["id"]
    for _, _, target in found.joined.links:
        assert target in found.told
    old = rows["id"][rows["id"] < FIRST_ID].tolist()
    assert set(old) <= set(found.recorded["id"].tolist())
