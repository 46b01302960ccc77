"""What the names of torch's events mean, for `attribution.late`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opscope.attribution.late import Customs
from opscope.hosts.torch.known import Dispatcher
from opscope.hosts.torch.operators import Watched
from opscope.importers.torch_names import AGAIN
from opscope.model import Op


def customs(
    watched: Iterable[Watched],
    seen: Iterable[str],
    dispatcher: Dispatcher,
    name: Callable[[str], int],
    entry: Callable[[Op], int],
    *,
    hooked: bool,
) -> Customs:
    """`seen` are the names of the events at hand. With `hooked`, calls of the watched operators
    were recorded where they ran; else their events are all there is."""
    forward: dict[int, int] = {}
    backward: dict[int, int] = {}
    around: dict[tuple[int, int], int] = {}
    inside: dict[tuple[int, int], int] = {}
    recorded: set[int] = set()
    texts = set(seen)
    twice = _shared(watched := list(watched))
    for operator in watched:
        if operator.forward_event not in texts and operator.backward_event not in texts:
            continue
        op = entry(operator.op)
        if operator.backward_event in texts:
            node = around[op, 1] = name(operator.backward_event)
            if hooked:
                recorded.add(node)
            else:
                told = operator.backward_event not in twice
                backward[node] = op if told else entry(_one_of(operator))
        if operator.forward_event in texts:
            (around if operator.outside else inside)[op, 0] = name(operator.forward_event)
            if not hooked:
                told = operator.forward_event not in twice
                forward[name(operator.forward_event)] = op if told else entry(_one_of(operator))
    own = {operator.forward_event for operator in watched if operator.outside}
    for text in texts - own:
        found = dispatcher.find(text)
        if found is not None:
            forward[name(text)] = entry(found.op)
    again = frozenset(name(text) for text in AGAIN if text in texts)
    return Customs(forward, backward, around, inside, frozenset(recorded), again)


def _one_of(operator: Watched) -> Op:
    """What stands for several operators that their events do not tell apart."""
    return Op(operator.op.host, operator.op.kind, operator.op.name)


def _shared(watched: list[Watched]) -> set[str]:
    """Names of events that several operators have: two classes of one name in two modules."""
    seen: set[str] = set()
    twice: set[str] = set()
    for operator in watched:
        for text in {operator.forward_event, operator.backward_event}:
            (twice if text in seen else seen).add(text)
    return twice
