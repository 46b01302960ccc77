"""The walk from heads back to leaves: pushes operators, and keeps what reaches where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .array import Array, apply
from .errors import EngineError
from .tape import Edge, Node, edge


class Found:
    """The sums of the gradients that reached leaves, and outputs of nodes that were watched."""

    def __init__(self) -> None:
        self.leaves: dict[Array, Array] = {}
        self.watched: dict[tuple[Node, int], Array | None] = {}

    def at(self, place: Edge) -> Array | None:
        """What reached this place; None if nothing did."""
        if place is None:
            return None
        return self.watched.get(place) if isinstance(place, tuple) else self.leaves.get(place)


def ordered(heads: Iterable[Array]) -> list[Node]:
    """All nodes that gradients of the heads flow into, every node before those it was made from.

    EngineError if a part of them was freed.
    """
    seen: set[Node] = set()
    found: list[Node] = []
    stack = [(head.node, False) for head in heads if head.node is not None]
    while stack:
        node, left = stack.pop()
        if left:
            found.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if not node.flows:
                continue
            if node.inputs is None:
                raise EngineError(f"the tape behind {node.name!r} was freed; use retain_graph")
            stack += [(source[0], False) for source in node.inputs if isinstance(source, tuple)]
    found.reverse()
    return found


def behind(order: Iterable[Node]) -> dict[Edge, None]:
    """All that the heads depend on, also where no gradient flows; what was freed ends there."""
    found: dict[Edge, None] = {}
    stack = list(order)
    seen = set(stack)
    while stack:
        for source in stack.pop().inputs or ():
            found[source] = None
            if isinstance(source, tuple) and source[0] not in seen:
                seen.add(source[0])
                stack.append(source[0])
    return found


def walk(
    order: list[Node],
    heads: Sequence[Array],
    head_grads: Sequence[Array | None],
    add: bool,
    watched: Iterable[Edge] = (),
) -> Found:
    """Push the gradients of these nodes. Does not block.

    With `add`, an operator that can add to the gradient of a leaf itself is told to, if nothing
    else reaches that leaf.
    """
    grads: dict[Node, list[Array | None]] = {node: [None] * node.outputs for node in order}
    places = [place for place in watched if isinstance(place, tuple)]
    found = Found()
    leaves = found.leaves

    def give(to: Edge, gradient: Array) -> None:
        if isinstance(to, tuple):
            slots = grads[to[0]]
            have = slots[to[1]]
            slots[to[1]] = gradient if have is None else have + gradient
        elif to is not None:
            leaves[to] = leaves[to] + gradient if to in leaves else gradient

    for head, gradient in zip(heads, head_grads, strict=True):
        if gradient is None:
            gradient = apply("_ones", shape=head.shape, dtype=head.dtype)
        give(edge(head), Array(gradient.storage))  # plain, whatever class the caller's is of
    targets = _targets(order, heads) if add else {}
    for node in order:
        incoming = grads.pop(node)
        for place in places:
            if place[0] is node:
                found.watched[place] = incoming[place[1]]
        if node.inputs is None or node.gradient is None or all(g is None for g in incoming):
            continue
        into = [targets.get(to) if isinstance(to, Array) else None for to in node.inputs]
        for to, outgoing in zip(node.inputs, node.gradient(incoming, into), strict=True):
            if outgoing is not None:
                give(to, outgoing)
    return found


def _targets(order: list[Node], heads: Sequence[Array]) -> dict[Array, Array]:
    """The gradients to add to, of leaves that are used once."""
    sources = [source for node in order for source in node.inputs or ()]
    sources += [edge(head) for head in heads]
    uses = Counter(leaf for leaf in sources if isinstance(leaf, Array) and leaf.grad_req == "add")
    return {leaf: leaf.grad for leaf, count in uses.items() if count == 1 and leaf.grad is not None}
