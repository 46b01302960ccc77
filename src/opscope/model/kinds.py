"""The closed vocabularies: what a span is, which phase it belongs to, what is special about it."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Kind(IntEnum):
    """What a span is. The numbers are part of the file format."""

    CALL = 1  #: one invocation of a custom operator
    OP = 2  #: an operator a framework executed
    TASK = 3  #: a function handed to another thread
    WAIT = 4  #: a thread that only waited
    DISPATCH = 5  #: a framework's wrapper around a custom operator's function
    RUNTIME = 6  #: chores of an engine, garbage collection; owner is always 0
    DEVICE = 7  #: work on a device stream
    RANGE = 8  #: an annotation of the user's
    STEP = 9  #: one step of the user's loop


class Phase(IntEnum):
    """Which half of training a span served."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    RECOMPUTE = 3


class Flag(IntFlag):
    """What is special about a span; several may be set."""

    FAILED = 1  #: it raised
    INCOMPLETE = 2  #: its end was not seen; `end_ns` is the last moment known
    CLAMPED = 4  #: it began before recording did; `start_ns` is when recording began
    INFERRED = 8  #: its owner was worked out after the fact
    ESTIMATED = 16  #: python and wait were split with a child's CPU time unknown
    LOSSY = 32  #: spans were dropped while it ran
    SUSPENDED = 64  #: a wait: a generator or coroutine that was not running
    CROSSED = 128  #: a `with` block that a `yield` crossed
    PAUSED = 256  #: recording was paused while it ran
    OUTLIVED = 512  #: something it started ended after it


class LinkKind(IntEnum):
    """How two spans belong together beyond ownership."""

    PUSH = 1  #: a call's lane at submission to the execution of an operator
    SPAWN = 2  #: a call to the task it handed to another thread
    LAUNCH = 3  #: a host operator to its device work
    BACKWARD = 4  #: a backward call to its forward call


def flag_names(flags: int) -> list[str]:
    """Lower-case names of the flags set, in the order of their bits."""
    return [flag.name.lower() for flag in Flag if flag & flags and flag.name]
