"""What was odd about a file: counted, with the first places, never silently mended."""

from __future__ import annotations

from collections.abc import Iterable

from opscope.model import Finding

#: Of each kind of oddity the first so many places are kept.
PLACES = 5


class Quality:
    """Counts oddities by what they are, in a few words."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}

    def count(self, what: str, number: int = 1, places: Iterable[object] = ()) -> None:
        """`number` more of that kind; places are texts or numbers (byte offset, event number)."""
        if number <= 0:
            return
        self._counts[what] = self._counts.get(what, 0) + number
        kept = self._places.setdefault(what, [])
        for place in places:
            if len(kept) >= PLACES:
                break
            kept.append(str(place))

    def findings(self) -> tuple[Finding, ...]:
        """All of them, in the order in which they were first seen."""
        return tuple(
            Finding(what, number, tuple(self._places[what]))
            for what, number in self._counts.items()
        )
