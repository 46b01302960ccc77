"""What the names of MXNet's operators tell, which is all its profile says of custom operators."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opscope.attribution import BACKWARD_PREFIX

#: Categories of what the engine ran; the first releases had one for everything.
CUSTOM = "Custom Operator"
ENGINE = frozenset(("operator", CUSTOM, "category"))
API = "MXNET_C_API"

#: MXNet keeps so many bytes of a name.
CUT = 127

#: The time in a custom operator's function.
PYTHON = "pure_python"
#: A custom operator as the engine sees it: the whole call, of whichever operator.
WHOLE = frozenset(("Custom", BACKWARD_PREFIX + "Custom", "CustomOperator"))
#: What the engine runs last for a call, to wait for the rest; hidden unless the call raised.
LAST = "CustomOperatorWait"

_CHORE = re.compile(
    r"DeleteVariable|WaitForVar|Resource\w*SetSeed|Copy[CG]PU2[CG]PU|CustomOperatorWait"
)
#: Calls of the C interface that wait for the engine.
_WAITS = re.compile(r"MXNDArray(WaitToRead|WaitToWrite|WaitAll|SyncCopyToCPU\w*)|MXEngineWait\w*")
#: Custom operators in all but name that MXNet itself has, written in C++.
_NATIVE = "MXThreadedDataLoader"


@dataclass(frozen=True, slots=True)
class Told:
    """One name. `op` is the text before the last `::`: the custom operator, with `_backward_` for
    the calls of its backward function; empty: of none. `name` is the rest, the operator itself."""

    op: str
    name: str
    cut: bool

    @property
    def is_python(self) -> bool:
        """Whether it is the time of a call. A name that was cut may be that too."""
        return bool(self.op) and self.name == PYTHON

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole call of an operator that it does not name."""
        return self.name in WHOLE

    @property
    def is_last(self) -> bool:
        """Whether it is the wait that shows only of calls that raised."""
        return bool(self.op) and self.name == LAST

    @property
    def is_chore(self) -> bool:
        """Whether it is work of the engine's own, charged to whoever's thread it runs on."""
        return _CHORE.fullmatch(self.name) is not None

    @property
    def is_bulk(self) -> bool:
        """Whether several operators ran as one."""
        if self.name == "ImperativeBulk" or "," in self.name:
            return True
        return self.name.startswith("[") and not self.name.endswith("]")


def told(text: str, custom: bool) -> Told:
    """What a name tells; `custom`: it was written in the domain of custom operators.

    Of several `::` only the last one counts: an operator that the framework keeps gets one prefix
    more each time it is used, and keeps them, so they are not who called whom.
    """
    cut = _cut(text)
    if not custom:
        return Told("", text, cut)
    before, between, after = text.rpartition("::")
    if not between:
        # Cut before the end of the operator's name, which others may share.
        return Told(text, text, cut)
    return Told(before, after, cut)


def _cut(text: str) -> bool:
    """Whether a name has all the bytes that MXNet keeps. Half a letter at the end, of up to three
    bytes, reads as one character."""
    whole = text.rstrip("\ufffd")
    size = len(whole.encode("utf-8", "replace"))
    return size >= CUT if whole == text else size >= CUT - 3


def waits(name: str) -> bool:
    """Whether a call of the C interface waits for the engine."""
    return _WAITS.fullmatch(name) is not None


def native(op: str) -> bool:
    """Whether that custom operator is part of MXNet and not written in Python."""
    return op.startswith(_NATIVE)


def split(op: str) -> tuple[str, bool]:
    """(operator, whether it is its backward function) of a prefix.

    An operator that somebody called `_backward_X` cannot be told from the backward calls of `X`.
    """
    if op.startswith(BACKWARD_PREFIX) and len(op) > len(BACKWARD_PREFIX):
        return op[len(BACKWARD_PREFIX) :], True
    return op, False
