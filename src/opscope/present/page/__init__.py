"""The report page: one HTML file that needs no network and runs no code but its own."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any, TextIO

from opscope._version import __version__
from opscope.analyse import summary
from opscope.model import Session
from opscope.present.page import assets, timeline
from opscope.present.page.facts import recorded, remarks, title
from opscope.present.page.headline import figures, headline
from opscope.present.page.icicle import icicle
from opscope.present.page.lines import hot_lines
from opscope.present.page.operators import operators, outermost, total
from opscope.present.text import shorten, visible

#: Processes beyond so many are counted and left out.
PROCESSES = 64

__all__ = ["as_data", "write_page"]


def write_page(session: Session, file: TextIO) -> None:
    """Write the page to a text file opened for UTF-8 that does not translate newlines.

    Whatever the session holds is written as text or as data, never as markup or script.
    """
    # Not at the top: `opscope.present` is loaded by commands that need no templates.
    from jinja2 import DictLoader, Environment

    environment = Environment(
        loader=DictLoader({"report": assets.template("report.html.j2")}),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(visible=visible, shorten=shorten)
    head, script, style = assets.head(), assets.script(), assets.style()
    rows = outermost(summary(session))
    processes = recorded(session)
    page = environment.get_template("report").stream(
        title=title(session),
        version=__version__,
        policy=policy([head, script], [style]),
        head=head,
        script=script,
        style=style,
        headline=headline(session),
        one=len({row.key or row.op for row in rows}) == 1,
        figures=figures(session),
        remarks=remarks(session),
        recorded=processes[:PROCESSES],
        recorded_left_out=max(len(processes) - PROCESSES, 0),
        sights=session.sight,
        data=[
            ("whole-data", as_data(total(rows))),
            ("operators-data", as_data(operators(session))),
            ("lines-data", as_data(hot_lines(session))),
            ("icicle-data", as_data(icicle(session))),
            ("timeline-data", as_data(timeline.packed(session))),
        ],
    )
    file.writelines(page)


def as_data(value: Any) -> str:
    """JSON that is safe inside a script element: ASCII, and without <, > and &."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The content security policy under which just these scripts and styles work."""
    allowed = {"script-src": scripts, "style-src": styles}
    sources = "; ".join(
        f"{kind} {' '.join(_hash(text) for text in texts)}" for kind, texts in allowed.items()
    )
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
