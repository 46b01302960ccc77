"""Whose line is that? A stack of Python frames, read for the operator that runs on it."""

from __future__ import annotations

import dis
import os
import sysconfig
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from opscope.model import Op

#: (own, library): of opscope's frames only those of hosts stand between an operator and its caller.
_OWN, _LIBRARY, _OURS, _HOSTS = range(4)

_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_HOSTS_FOLDER = f"{_PACKAGE}hosts{os.sep}"
_EXAMPLES = f"{_PACKAGE}cli{os.sep}demo_files{os.sep}"
_SITES = tuple(
    f"{path}{os.sep}" for path in dict.fromkeys(map(sysconfig.get_path, ("purelib", "platlib")))
)
_LIBRARIES = (
    *_SITES,
    *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")),
    "<frozen ",
)

_BEGIN = dis.opmap.get("RESUME")
#: Instructions after which Python looks for signals.
_LOOKS = ("CALL", "JUMP_BACKWARD")
#: Instructions that may take long, likely ones first; those of the second sort let go of something.
_WORKS = (
    ("BINARY_OP", "UNARY", "COMPARE", "CONTAINS", "LIST_EXTEND", "SET_UPDATE", "DICT_"),
    ("POP_TOP", "STORE", "DELETE"),
    ("BINARY", "BUILD", "FORMAT", "UNPACK", "FOR_ITER", "GET_ITER", "IMPORT", "LOAD_ATTR"),
)

#: No more frames than this are looked at, and no more files remembered.
_DEEPEST, _MOST_FILES = 256, 10_000

_sorts: dict[str, int] = {}


class Place(NamedTuple):
    """A line that runs, in a function."""

    file: str
    function: str
    first_line: int
    line: int
    library: bool


#: From the inside out.
Stack = tuple[Place, ...]


def before(frame: FrameType | None) -> tuple[FrameType | None, int]:
    """For a frame that stands at its very first instruction: its caller, and the line that did
    something before this call; else the frame itself, and 0.

    Python looks for signals when a function begins. Where that is late, it is not the function that
    took so long: the caller computed its arguments, or let go of the result of the line before.
    """
    if frame is None or frame.f_back is None or _BEGIN is None:
        return frame, 0
    if frame.f_lasti < 0 or frame.f_code.co_code[frame.f_lasti] != _BEGIN:
        return frame, 0
    caller = frame.f_back
    lines = [0] * len(_WORKS)  # the last of each sort since Python looked before
    kept = lines[:]
    called = False
    for offset, line, sort in _instructions(caller.f_code):
        if offset > caller.f_lasti:
            break
        called = sort < 0
        if called:
            kept, lines = lines, [0] * len(_WORKS)  # what called is such a one as well
        elif sort < len(_WORKS):
            lines[sort] = line
    line = next(filter(None, kept), 0) if called else 0
    return (caller, line) if line else (frame, 0)


@lru_cache(maxsize=512)
def _instructions(code: CodeType) -> tuple[tuple[int, int, int], ...]:
    """(offset, line, which of `_WORKS` it is; -1: Python looks for signals after it)."""
    found = []
    line = 0
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        line = getattr(getattr(instruction, "positions", None), "lineno", None) or line
        sorts = [sort for sort, names in enumerate(_WORKS) if name.startswith(names)]
        sort = -1 if name.startswith(_LOOKS) else sorts[0] if sorts else len(_WORKS)
        found.append((instruction.offset, line, sort))
    return tuple(found)


def stack_of(frame: FrameType | None, line: int = 0) -> Stack:
    """The frames from `frame` out to whoever called the operator; nothing where it is ours.

    `line` is that of the innermost of them where it is not the one that runs now.

    Frames of opscope inside (a wait, an engine that works) are part of the line that called them.
    """
    found: list[Place] = []
    own = False
    for _ in range(_DEEPEST):
        if frame is None:
            break
        code = frame.f_code
        sort = _sorts.get(code.co_filename)
        if sort is None:
            sort = _sort(code.co_filename)
        if sort >= _OURS:
            if own or (found and sort == _HOSTS):
                break
            if sort == _HOSTS:
                return ()
            found.clear()
        else:
            own = own or sort == _OWN
            name = getattr(code, "co_qualname", code.co_name)
            at = line or frame.f_lineno or code.co_firstlineno
            found.append(Place(code.co_filename, name, code.co_firstlineno, at, sort == _LIBRARY))
        frame, line = frame.f_back, 0
    return tuple(found)


def is_library(file: str) -> bool:
    """Whether the file is installed, or of the standard library."""
    return _sorts.get(file, -1) == _LIBRARY or _sort(file) == _LIBRARY


def is_ours(file: str) -> bool:
    """Whether the file is opscope's."""
    return _sort(file) >= _OURS


def of_op(stack: Stack, op: Op) -> tuple[Place, Place] | None:
    """(the innermost line of the operator's own Python, the line of its body that led there).

    What a library does for it counts to the line that called the library. None where none of the
    lines is the operator's: the framework's wrapper runs.
    """
    body = _body(stack, op)
    if body is None:
        return None
    place = stack[body]
    own = _home(place.file) if place.library else ""
    for inner in stack[:body]:
        if not inner.library or (own and _home(inner.file) == own):
            return inner, place
    return place, place


def _body(stack: Stack, op: Op) -> int | None:
    """Which frame is that of the operator's function, or of the code that its block stands in."""
    block = op.kind == "block"
    for index, place in enumerate(stack):
        if place.file == op.file and (
            place.first_line <= op.line <= place.line if block else place.first_line == op.line
        ):
            return index
    own = [index for index, place in enumerate(stack) if not place.library]
    if own:  # a block of that name somewhere else: how far out it stands is not known
        return own[0] if block else own[-1]
    home = _home(op.file)
    inside = [index for index, place in enumerate(stack) if home and _home(place.file) == home]
    return inside[-1] if inside else None


def _sort(file: str) -> int:
    if file.startswith(_PACKAGE) and not file.startswith(_EXAMPLES):
        sort = _HOSTS if file.startswith(_HOSTS_FOLDER) else _OURS
    else:
        sort = _LIBRARY if file.startswith(_LIBRARIES) else _OWN
    if len(_sorts) >= _MOST_FILES:
        _sorts.clear()
    _sorts[file] = sort
    return sort


def _home(file: str) -> str:
    """The installed package that a file belongs to; "" for none."""
    for site in _SITES:
        if file.startswith(site):
            return file[len(site) :].partition(os.sep)[0]
    return ""
