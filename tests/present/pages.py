"""The page as a test reads it: its elements by the standard parser, its data as JSON."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser
from typing import Any

from opscope.model import Session
from opscope.present.page import write_page


class Page(HTMLParser):
    """`tags` in order with their attributes, `raw` of script and style by what they are, `shown`
    the text between tags."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = text
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._raw: tuple[str, dict[str, str | None], list[str]] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in {"script", "style"}:
            self._raw = tag, dict(attrs), []

    def handle_endtag(self, tag: str) -> None:
        if self._raw and tag == self._raw[0]:
            _, attributes, pieces = self._raw
            if tag == "script":
                self.scripts.append((attributes, "".join(pieces)))
            else:
                self.styles.append("".join(pieces))
            self._raw = None

    def handle_data(self, data: str) -> None:
        (self._raw[2] if self._raw else self.words).append(data)

    @property
    def shown(self) -> str:
        """What a reader without the script sees, blanks drawn together."""
        return " ".join(" ".join(self.words).split())

    @property
    def code(self) -> list[str]:
        """The scripts that run."""
        return [text for attributes, text in self.scripts if "type" not in attributes]

    def data(self, ident: str) -> Any:
        """One of the data elements."""
        (text,) = [text for attributes, text in self.scripts if attributes.get("id") == ident]
        return json.loads(text)


def page_of(session: Session) -> Page:
    """The page of a session."""
    file = io.StringIO()
    write_page(session, file)
    return Page(file.getvalue())
