"""Sessions to files: the ending says the format; a file appears whole or not at all."""

from __future__ import annotations

import getpass
import gzip
import io
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from opscope.analyse.redact import redacted
from opscope.errors import UsageError
from opscope.model import Session
from opscope.present.chrome import write_chrome
from opscope.present.csv import write_csv
from opscope.present.lines import write_links, write_spans
from opscope.present.page import write_page
from opscope.present.perfetto import write_perfetto
from opscope.present.speedscope import write_speedscope


@dataclass(frozen=True, slots=True)
class Format:
    """`write` gets a text file opened for UTF-8 that does not translate newlines; where `binary`,
    a file of bytes."""

    ending: str
    about: str
    write: Callable[[Session, Any], None]
    gzipped: bool = False
    binary: bool = False


#: The first whose ending a name has is taken.
FORMATS = (
    Format(".html", "page to look at", write_page),
    Format(".htm", "the same", write_page),
    Format(".pftrace", "trace for Perfetto, smaller and quicker", write_perfetto, binary=True),
    Format(".speedscope.json", "profile for speedscope", write_speedscope),
    Format(".speedscope.json.gz", "the same, compressed", write_speedscope, gzipped=True),
    Format(".json", "trace for Chrome and Perfetto", write_chrome),
    Format(".json.gz", "the same, compressed", write_chrome, gzipped=True),
    Format("links.jsonl", "links, one JSON object a line", write_links),
    Format(".jsonl", "spans, one JSON object a line", write_spans),
    Format(".csv", "spans, comma-separated", write_csv),
)


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format for a file of that name. Raises UsageError, with all there are, for any other."""
    name = Path(path).name.lower()
    for entry in FORMATS:
        if name.endswith(entry.ending):
            return entry
    known = "; ".join(f"{entry.ending} ({entry.about})" for entry in FORMATS)
    raise UsageError(f"cannot tell a format from {str(path)!r}: give it one of the endings {known}")


def export(
    session: Session, path: str | os.PathLike[str], *, force: bool = False, redact: bool = False
) -> None:
    """Write the session to a file in the format its ending names.

    With `redact`, stand-ins take the place of users, hosts and folders, also of the present ones.
    Raises UsageError for an unknown ending, for a file that is there already unless `force`, and
    for one that cannot be written. Whatever happens, no half-written file stays behind.
    """
    entry, target = format_of(path), Path(path)
    if _is_there(target) and not force:
        raise UsageError(f"{str(path)!r} is there already: choose another name, or force it")
    if redact:
        session = redacted(session, users=_users(), hosts=[socket.gethostname()])
    try:
        with _whole(target) as temporary, _opened(temporary, entry) as file:
            entry.write(session, file)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot write {str(path)!r}: {reason}") from error


def _is_there(target: Path) -> bool:
    """Also a link that leads nowhere. Raises UsageError for a name that no file can have."""
    try:
        target.lstat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot write {str(target)!r}: {reason}") from error
    return True


def _users() -> list[str]:
    """Whoever runs this process, as far as anybody knows."""
    names = [os.environ.get(name, "") for name in ("LOGNAME", "USER", "USERNAME")]
    try:
        names.append(getpass.getuser())
    except (OSError, KeyError, ImportError):
        names.append("")
    return names


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """A name beside the target, which takes the target's place at the end if all went well."""
    temporary = target.with_name(f".opscope-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _opened(path: Path, entry: Format) -> Iterator[TextIO | BinaryIO]:
    if entry.binary:
        with path.open("xb") as octets:
            yield octets
        return
    if not entry.gzipped:
        with path.open("x", encoding="utf-8", newline="") as file:
            yield file
        return
    # No name and no time inside, so that equal sessions make equal files.
    with (
        path.open("xb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as packed,
    ):
        file = io.TextIOWrapper(cast("Any", packed), encoding="utf-8", newline="")
        yield file
        file.flush()
        file.detach()
