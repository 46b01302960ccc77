"""Everything opscope raises on purpose, and the exit code of each on the command line.

OpscopeError                 1
├── UsageError               2  something impossible was asked for (also a ValueError)
├── InputError               3  a file cannot be read as a session
└── HostError                1  a host cannot be found or attached
"""

from __future__ import annotations


class OpscopeError(Exception):
    """The root. `exit_code` is what the command line returns when the error reaches it."""

    exit_code = 1


class UsageError(OpscopeError, ValueError):
    """The call or the command asked for something that cannot be: says what, and what to do."""

    exit_code = 2


class InputError(OpscopeError):
    """A file is missing, foreign, newer than this version, or damaged beyond its first frame."""

    exit_code = 3


class HostError(OpscopeError):
    """A host is unknown, or could not be attached."""
