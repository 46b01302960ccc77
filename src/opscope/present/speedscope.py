"""A session for speedscope: an evented profile for each thread of the Chrome trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TextIO

import numpy as np

from opscope.analyse.basis import basis
from opscope.model import Kind, Session
from opscope.present.edges import Edges, edges, layout
from opscope.present.slices import Face
from opscope.present.threads import threads

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_PORTION = 1 << 15

#: Slices that lie where the function of their operator is.
_AT_HOME = (Kind.CALL.name.lower(), "own")


def write_speedscope(session: Session, file: TextIO) -> None:
    """Write to a text file opened for UTF-8. Whole nanoseconds from the session's start.

    A frame is a name on show; those of calls and of their own time have the file and line of the
    operator where it is known. Lanes without spans are left out.
    """
    where = threads(session)
    laid = layout(session, where)
    frames, number = _frames(session, laid.faces)
    of_slice = number[laid.face] if len(number) else laid.face
    last_ns = int(laid.end_ns.max(initial=0))
    file.write(f'{{"$schema": {json.dumps(_SCHEMA)},\n"exporter": "opscope",\n')
    file.write(f'"name": {json.dumps(_title(session))},\n"shared": {{"frames": [\n')
    file.write(",\n".join(frames))
    file.write('\n]},\n"profiles": [')
    separator = "\n"
    for entry in edges(laid):
        thread = where.every[entry.thread]
        lane = session.lanes[thread.lane]
        title = lane.name if not thread.track else f"{lane.name} ({thread.track + 1})"
        if len(session.processes) > 1:
            title = f"{title}, pid {session.processes[lane.process].pid}"
        file.write(
            f'{separator}{{"type": "evented", "name": {json.dumps(title)}, '
            f'"unit": "nanoseconds", "startValue": 0, "endValue": {last_ns}, "events": ['
        )
        between = "\n"
        for portion in _events(entry, of_slice[entry.slice]):
            file.write(between)
            file.write(portion)
            between = ",\n"
        file.write("\n]}")
        separator = ",\n"
    file.write("\n]}\n")


def _events(entry: Edges, frame: np.typing.NDArray[np.int64]) -> Iterator[str]:
    """The events of one profile, some thousands at a time."""
    letter = np.where(entry.begins, "O", "C")
    for begin in range(0, len(frame), _PORTION):
        part = slice(begin, begin + _PORTION)
        columns = (letter[part].tolist(), frame[part].tolist(), entry.at_ns[part].tolist())
        yield ",\n".join(
            [
                f'{{"type":"{what}","frame":{which},"at":{at}}}'
                for what, which, at in zip(*columns, strict=True)
            ]
        )


def _frames(
    session: Session, faces: tuple[Face, ...]
) -> tuple[list[str], np.typing.NDArray[np.int64]]:
    """The frames as JSON, each once, and the number of the frame of each face."""
    base, sites = basis(session), {op.key: (op.file, op.line) for op in session.ops}
    known: dict[str, int] = {}
    number = []
    for face in faces:
        frame: dict[str, object] = {"name": face.name}
        key = base.key[face.path] if face.path >= 0 and face.kind in _AT_HOME else None
        file, line = sites.get(key or "", ("", 0))
        if file:
            frame["file"] = file
            if line:
                frame["line"] = line
        number.append(known.setdefault(json.dumps(frame), len(known)))
    return list(known), np.array(number, np.int64)


def _title(session: Session) -> str:
    """The commands that were recorded."""
    commands = [" ".join(process.command) for process in session.processes]
    return "; ".join(dict.fromkeys(command for command in commands if command)) or "opscope"
