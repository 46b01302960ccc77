"""Names as a terminal can show them: nothing invisible, nothing wider than its place."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

#: Between the names of a path.
_JOINT = "::"
#: What stands around a name is shortened to this many cells before the name itself is.
_AROUND = 8


@dataclass(frozen=True, slots=True)
class Label:
    """A name with the path `around` it, the outermost first, both ready to show; `lead` are the
    lines of a tree before it."""

    name: str
    around: tuple[str, ...] = ()
    lead: str = ""

    @property
    def whole(self) -> str:
        """All of it."""
        return self.lead + _JOINT.join((*self.around, self.name))

    def fit(self, cells: int, mark: str = "…") -> str:
        """In at most that many terminal cells: the path gives way before the name does."""
        if cell_len(self.whole) <= cells:
            return self.whole
        room = cells - cell_len(self.lead)
        if room < 2:
            return shorten(self.whole, cells, mark)
        around = _JOINT.join(self.around)
        if not around or room < 2 * _AROUND:
            return self.lead + shorten(_JOINT.join((*self.around, self.name)), room, mark)
        room -= len(_JOINT)
        least = min(cell_len(around), _AROUND)
        name = shorten(self.name, room - least, mark)
        return self.lead + shorten(around, room - cell_len(name), mark) + _JOINT + name


def visible(text: str, encoding: str = "utf-8") -> str:
    """The text with control characters, lone surrogates and all else that does not print, or that
    the encoding lacks, written as backslash escapes."""
    if not text.isprintable():
        text = "".join(
            char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
            for char in text
        )
    try:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")


def shorten(text: str, cells: int, mark: str = "…") -> str:
    """The text in at most that many terminal cells, its middle left out where it is too long."""
    if cell_len(text) <= cells:
        return text
    room = cells - cell_len(mark)
    if room < 2:
        return set_cell_size(text, max(cells, 0))
    head, tail = room - room // 2, room // 2
    return _fit(text, head) + mark + _fit(text[::-1], tail)[::-1]


def pad(text: str, cells: int, *, right: bool = False) -> str:
    """The text filled with blanks to that many cells; `right` puts it to the right."""
    blanks = " " * max(cells - cell_len(text), 0)
    return blanks + text if right else text + blanks


def _fit(text: str, cells: int) -> str:
    width = 0
    for index, char in enumerate(text):
        width += cell_len(char)
        if width > cells:
            return text[:index]
    return text
