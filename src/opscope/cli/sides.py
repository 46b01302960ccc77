"""Two sides of runs on one command line: `BASE... -- NEW...`, files and folders as runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from opscope.cli.files import load
from opscope.errors import UsageError
from opscope.importers import members
from opscope.model import Session

#: Stands for `--` among the arguments, which click would take away. No path has a NUL.
BETWEEN = "\0--"

_UNITS = {"ns": 1, "us": 10**3, "\N{MICRO SIGN}s": 10**3, "ms": 10**6, "s": 10**9}


class TwoSided(click.Command):
    """Options may stand anywhere; the first `--` parts base from new, a second is as usual."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put a mark where the sides meet."""
        if "--" in args:
            at = args.index("--")
            args = [*args[:at], BETWEEN, *args[at + 1 :]]
        return super().parse_args(ctx, args)


def runs(paths: Sequence[str], custom: Sequence[str] = ()) -> Iterator[Session]:
    """One session a run: each file is one; in a folder each file is one, and each folder in it is
    one of several processes. Raises InputError, naming the path, for what cannot be read, and
    UsageError for one that is there twice: copies of one run hide how runs differ."""
    seen: set[str] = set()
    for path in paths:
        for run in _runs_at(Path(path)) if path else [path]:
            place = os.path.realpath(run)
            if place in seen:
                raise UsageError(f"{str(run)!r} is named twice on one side: a run counts once")
            seen.add(place)
            yield load([str(run)], custom)


def _runs_at(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = [Path(member.name).relative_to(path).parts[0] for member in members(path)]
    return [path / name for name in dict.fromkeys(inside)]


def duration(text: str) -> int:
    """Nanoseconds from `50us`. Raises UsageError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([^\d\s.]+)", text.strip())
    if found is None or found[2] not in _UNITS:
        raise UsageError(f"{text!r} is no time: write it as 50us, 1.5ms, 200ns or 2s")
    return round(float(found[1]) * _UNITS[found[2]])


def percentage(text: str) -> float:
    """0.1 from `10%`. Raises UsageError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*%", text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no share: write it as 10%")
    return float(found[1]) / 100
