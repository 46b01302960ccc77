"""Sessions from files and from finished profiles of torch, as rows, and to files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from opscope import analyse, hosts, importers, present, store
from opscope.errors import InputError, UsageError
from opscope.model import Session


def load(*paths: str | os.PathLike[str], custom: Sequence[str] = ()) -> Session:
    """Read session files, other people's traces, archives and folders of them, as one session.

    The kind of each is told by its content. A file that is also in a folder beside it, or there by
    two names, is read once. `custom`: globs of names that are custom operators in a trace that does
    not say so. Raises InputError, naming the file, for what cannot be read, and UsageError for a
    path that is named twice.
    """
    if not paths or "" in paths:  # an empty name, as of a variable that is not set, is no folder
        raise InputError("no file was named" if not paths else "a file was named by an empty text")
    options = importers.Options(tuple(custom))
    return store.merge([_read(member, options) for member in _once(paths)])


def _once(paths: Sequence[str | os.PathLike[str]]) -> Iterator[importers.Member]:
    named: set[str] = set()
    read: set[str] = set()
    for path in paths:
        if (place := _place(path)) in named:
            raise UsageError(f"{str(path)!r} is named twice: its calls would count twice")
        named.add(place)
        for member in importers.members(Path(path)):
            if (place := _place(member.name)) not in read:
                read.add(place)
                yield member


def _place(path: str | os.PathLike[str]) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL in it: there is no such file, which its reader tells
        return os.fspath(path)


def _read(member: importers.Member, options: importers.Options) -> Session:
    head = member.head()
    if not head or store.is_session(head):
        data, why = member.whole()
        session = store.parse(data, member.name)
        if why:
            process = session.processes[0]
            damage = "; ".join(filter(None, (process.damage, why)))
            session = replace(session, processes=(replace(process, damage=damage),))
        return session
    return importers.read(member, options)


def summary(session: Session) -> list[dict[str, Any]]:
    """One row an operator, path and phase, as `opscope report --json` prints them; times in ns."""
    return [present.as_json(row) for row in analyse.summary(session)]


def export(
    session: Session, path: str | os.PathLike[str], *, force: bool = False, redact: bool = False
) -> None:
    """Write the session in the format that the ending of `path` names.

    `redact` puts stand-ins for the names of users, hosts and folders, as `export --redact` does.
    Raises UsageError for an ending that is not known, or when the file exists and not `force`.
    """
    present.export(session, path, force=force, redact=redact)


def explain(profiled: Any) -> Session:
    """A finished `torch.profiler.profile` (or `torch.autograd.profiler.profile`) as a session.

    Operators, their owners, forward and backward as in a recording; what only hooks see (CPU time,
    waits, hand-over to other threads) is not in it, so an operator's own time is untracked. Raises
    UsageError for anything else, or a profile that has not ended.
    """
    return hosts.explain(profiled)
