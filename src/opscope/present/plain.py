"""What is drawn on a console, as text."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console


def as_text(draw: Callable[[Console], None], width: int) -> str:
    """What `draw` prints on a console of that many columns, without colour."""
    console = Console(
        file=io.StringIO(),
        width=width,
        color_system=None,
        force_terminal=False,
        legacy_windows=False,
    )
    with console.capture() as caught:
        draw(console)
    return caught.get()
