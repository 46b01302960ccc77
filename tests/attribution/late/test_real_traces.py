"""Traces of real devices, against counts taken from the files by other means."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.attribution.late.world import Found, Line, entry, event, joined, text_of

from opscope.attribution.late import Customs, Role
from opscope.model import Kind, LinkKind

TRACES = Path(__file__).parents[4] / "shared" / "traces" / "kineto"

_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_RUNTIME = {"cuda_runtime", "cuda_driver"}
_ENGINE = "autograd::engine::evaluate_function"

#: (file, device spans, calls of the operators in it)
FILES = [
    ("eager_nested_custom_ops", 929, 400),
    ("graph_replay_ownerless_kernels", 558, 0),
    ("normalization_forward_backward", 173, 0),
    ("activation_checkpoint", 3653, 186),
    ("bert_small_h100", 61, 0),
]


@cache
def loaded(name: str) -> list[dict[str, Any]]:
    """The complete events of a file that are not of Python functions."""
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    kept = _DEVICE | _RUNTIME | {"cpu_op", "user_annotation"}
    found = [event for event in events if event["ph"] == "X" and event["cat"] in kept]
    return sorted(found, key=lambda event: (event["ts"], -event["dur"]))


def role(raw: dict[str, Any]) -> Role:
    """What the event is, by its category and its name."""
    name, category = raw["name"], raw["cat"]
    if category in _DEVICE:
        return Role.DEVICE
    if category in _RUNTIME:
        return Role.WAIT if name.endswith("Synchronize") else Role.API
    if category == "user_annotation":
        return Role.RANGE
    if name.startswith(_ENGINE):
        return Role.ENGINE
    return Role.NODE if "Sequence number" in raw["args"] and "Backward" in name else Role.OP


def line(raw: dict[str, Any]) -> Line:
    """The event as `join` takes it."""
    args, what = raw["args"], role(raw)
    start = round(raw["ts"] * 1000)
    on_host = what not in (Role.DEVICE, Role.API, Role.WAIT)
    return event(
        raw["name"],
        start,
        start + round(raw["dur"] * 1000),
        what,
        lane=entry(f"{raw['pid']} {raw['tid']}"),
        thread=0 if not on_host else int(raw["tid"]),
        forward_thread=args.get("Fwd thread id", 0),
        sequence=args.get("Sequence number", -1),
        correlation=0 if on_host else args.get("correlation", 0),
        external=args.get("External id", 0),
    )


def customs(raw: list[dict[str, Any]]) -> Customs:
    """Operators of no framework's namespace."""
    names = {each["name"] for each in raw if each["cat"] == "cpu_op" and "::" in each["name"]}
    theirs = ("aten::", "autograd::", "torch::", "c10d::")
    return Customs({entry(name): entry(name) for name in names if not name.startswith(theirs)})


@cache
def found_in(name: str) -> Found:
    """What `join` makes of the file."""
    raw = loaded(name)
    return joined([line(each) for each in raw], [], customs(raw))


def stacks(raw: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """For each event of a host lane, by its place, the events around it: outermost first."""
    open_: dict[tuple[int, int], list[dict[str, Any]]] = {}
    found = {}
    for place, each in enumerate(raw):
        if each["cat"] not in _DEVICE:
            stack = open_.setdefault((each["pid"], each["tid"]), [])
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= each["ts"]:
                stack.pop()
            found[place] = list(stack)
            stack.append(each)
    return found


def launchers(
    raw: list[dict[str, Any]], *, runtime_calls: bool = False
) -> list[dict[str, Any] | None]:
    """For each device event, in their order, what launched it: the innermost operator around the
    runtime call where there is one, or else, or if so wanted, that call itself."""
    around = stacks(raw)
    runtime: dict[int, int] = {}
    numbered: dict[int, dict[str, Any]] = {}
    for place, each in enumerate(raw):
        if each["cat"] in _RUNTIME:
            runtime.setdefault(each["args"].get("correlation", 0), place)
        elif each["cat"] not in _DEVICE:
            numbered.setdefault(each["args"].get("External id", 0), each)
    found = []
    for each in raw:
        if each["cat"] in _DEVICE:
            by = runtime.get(each["args"]["correlation"])
            if by is None:
                found.append(numbered.get(each["args"].get("External id", 0)))
            else:
                ops = [outer for outer in around[by] if outer["cat"] == "cpu_op"]
                ops = [] if runtime_calls else ops
                found.append((ops or [raw[by]])[-1])
    return found


@pytest.mark.parametrize(("name", "work", "calls"), FILES)
def test_no_event_is_lost_and_no_kernel(name: str, work: int, calls: int) -> None:
    raw, found = loaded(name), found_in(name)
    known, around = customs(raw).forward, stacks(raw)
    ours = [place for place in around if entry(raw[place]["name"]) in known]
    again = [
        place for place in ours if around[place] and around[place][-1]["name"] == raw[place]["name"]
    ]
    assert len(found.joined.rows) == len(raw) - len(again)
    kinds = Counter(found.joined.rows["kind"].tolist())
    assert kinds[Kind.DEVICE] == work == sum(each["cat"] in _DEVICE for each in raw)
    assert kinds[Kind.CALL] == calls == len(ours) - len(again)
    orphans = launchers(raw).count(None)
    assert found.joined.unattributed == orphans
    assert len(found.links(LinkKind.LAUNCH)) == work - orphans


@pytest.mark.parametrize("name", [each[0] for each in FILES])
def test_kernels_are_submitted_when_the_runtime_was_called(name: str) -> None:
    raw, found = loaded(name), found_in(name)
    by = [each for each in launchers(raw, runtime_calls=True) if each is not None]
    work = [span for span in found.joined.rows if span["kind"] == Kind.DEVICE]
    starts = Counter(int(span["submitted_ns"]) for span in work if span["submitted_ns"])
    assert starts == Counter(round(each["ts"] * 1000) for each in by)


def test_calls_of_a_served_model_own_what_ran_inside_them() -> None:
    name = "eager_nested_custom_ops"
    raw, found = loaded(name), found_in(name)
    known = customs(raw).forward
    expected: Counter[tuple[str, str]] = Counter()
    for place, outer in stacks(raw).items():
        inside = [each["name"] for each in outer if entry(each["name"]) in known]
        expected[raw[place]["name"], inside[-1] if inside else ""] += 1
    rows = found.joined.rows
    rows = rows[rows["kind"] != Kind.DEVICE]
    owners = [int(owner) for owner in rows["owner"]]
    names = [text_of(int(found.told[owner]["name"])) if owner else "" for owner in owners]
    own = [text_of(int(number)) for number in rows["name"]]
    assert Counter(zip(own, names, strict=True)) == expected
    assert sum(count for (_, owner), count in expected.items() if owner) > 1000


def test_the_kernels_of_a_replayed_graph_have_no_operator_and_stay() -> None:
    found = found_in("graph_replay_ownerless_kernels")
    replay = found.span("hipGraphLaunch")
    at = replay["start_ns"]
    work = [span for span in found.joined.rows if span["submitted_ns"] == at]
    assert len(work) > 500
    assert {(int(span["kind"]), int(span["owner"])) for span in work} == {(Kind.DEVICE, 0)}
    assert len(found.told) == len(found.joined.rows)
