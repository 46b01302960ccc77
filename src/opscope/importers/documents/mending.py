"""Mend the text of one event that is not JSON, by rules that cannot make it another event."""

from __future__ import annotations

import re
from collections.abc import Iterable

# What was mended, in words.
NAN = "numbers that are none (NaN, Infinity)"
NUMBERS = "numbers that are not written as JSON"
QUOTES = "texts with quotes or backslashes that were not escaped"
CONTROL = "control bytes inside an event"
UTF8 = "texts that are not UTF-8 (such bytes are shown as \N{REPLACEMENT CHARACTER})"
SURROGATES = "texts with half of a surrogate pair"
COMMAS = "commas too many"

_SPACE = re.compile(rb"[\x00-\x20]*")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_STRING = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_KEY_FOLLOWS = re.compile(rb"[\x00-\x20]*:")
_MEMBER_FOLLOWS = re.compile(
    rb'[\x00-\x20]*(?:,[\x00-\x20]*(?:"[^"\\]*"[\x00-\x20]*:|\})|\}[\x00-\x20]*(?:[,}\]]|\Z))'
)
_ITEM_FOLLOWS = re.compile(rb"[\x00-\x20]*[,\]]")
#: A text that holds one of these has swallowed more than itself.
_SWALLOWED = re.compile(rb'"[\x00-\x20]*:[\x00-\x20]*["{\[0-9tfnN-]|\}[\x00-\x20]*,?[\x00-\x20]*\{')
_PLAIN = re.compile(rb"[ !#-\[\]-~]*\Z")
_BAD_ESCAPE = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_HALF = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_BARE = re.compile(rb'[^\x00-\x20,:{}\[\]"]+')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_ODD_NUMBER = re.compile(rb"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?\Z")
_WORDS = {b"True": b"true", b"False": b"false", b"None": b"null", b"undefined": b"null"}
_NO_NUMBER = re.compile(rb"[+-]?(?:nan|inf|infinity)(?:\([^)]*\))?\Z", re.IGNORECASE)
_NAN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|([+-]?\b(?:NaN|nan|Infinity|inf)\b)', re.DOTALL)
_DEEPEST = 64


class _Hopeless(Exception):
    """The text cannot be mended."""


class _Short(_Hopeless):
    """It could perhaps be mended if it went on."""


def mend(text: bytes) -> tuple[bytes, tuple[str, ...]] | None:
    """The value as JSON and what was mended in it; None where no rule helps.

    Nothing is added that is not there: an event that lacks its end, or has one key twice, is not
    mended. Whoever left one quote or backslash of a text unescaped escaped none in it.
    """
    mender = _Mender(text)
    try:
        mender.whole()
    except _Hopeless:
        return None
    return b"".join(mender.out), tuple(mender.found)


def without_nan(text: bytes) -> bytes:
    """The same, with null for NaN and Infinity outside of texts."""
    return _NAN.sub(lambda found: b"null" if found[1] else found[0], text)


def mend_one_of(texts: Iterable[bytes]) -> tuple[bytes, tuple[str, ...]] | None:
    """The first that can be mended of beginnings of one text, from the shortest on. No more of
    them are asked for than need be."""
    for text in texts:
        mender = _Mender(text)
        try:
            mender.whole()
        except _Short:
            continue
        except _Hopeless:
            break
        return b"".join(mender.out), tuple(mender.found)
    return None


class _Mender:
    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0
        self.out: list[bytes] = []
        self.found: dict[str, None] = {}

    def whole(self) -> None:
        """All of the text."""
        self.value(_ITEM_FOLLOWS, 0)
        self.space()
        if self.at != len(self.text):
            raise _Hopeless

    def space(self) -> bytes:
        """Skip white space; the byte behind it."""
        first = self.text[self.at : self.at + 1]
        if first > b" ":
            return first
        found = _SPACE.match(self.text, self.at)
        end = found.end() if found else self.at
        if _CONTROL.search(self.text, self.at, end):
            self.found[CONTROL] = None
        self.at = end
        return self.text[end : end + 1]

    def _hopeless(self) -> _Hopeless:
        return _Short() if self.at >= len(self.text) else _Hopeless()

    def value(self, follows: re.Pattern[bytes], depth: int) -> None:
        first = self.space()
        if depth > _DEEPEST:
            raise _Hopeless
        if first == b"{":
            self._members(depth)
        elif first == b"[":
            self._items(depth)
        elif first == b'"':
            self._string(follows)
        else:
            self._bare()

    def _members(self, depth: int) -> None:
        self.at += 1
        keys: set[bytes] = set()
        self.out.append(b"{")
        while self._another(b"}", bool(keys)):
            place = len(self.out)
            if self.space() != b'"':
                raise self._hopeless()
            self._string(_KEY_FOLLOWS)
            key = b"".join(self.out[place:])
            if key in keys or self.space() != b":":
                raise self._hopeless()
            keys.add(key)
            self.at += 1
            self.out.append(b":")
            self.value(_MEMBER_FOLLOWS, depth + 1)
        self.out.append(b"}")

    def _items(self, depth: int) -> None:
        self.at += 1
        some = False
        self.out.append(b"[")
        while self._another(b"]", some):
            self.value(_ITEM_FOLLOWS, depth + 1)
            some = True
        self.out.append(b"]")

    def _another(self, end: bytes, some: bool) -> bool:
        """Whether another member follows; goes past a comma before it, or past the end."""
        first = self.space()
        if some and first == b",":
            self.at += 1
            first = self.space()
            if first == end:
                self.found[COMMAS] = None
            else:
                self.out.append(b",")
        elif some and first != end:
            raise self._hopeless()
        if first == end:
            self.at += 1
            return False
        return True

    def _string(self, follows: re.Pattern[bytes]) -> None:
        start = self.at + 1
        whole = _STRING.match(self.text, self.at)
        if whole and follows.match(self.text, whole.end()):
            self.at = whole.end()
            self._text(whole[1], bool(_BAD_ESCAPE.search(whole[1])))
            return
        end = start
        while True:
            end = self.text.find(b'"', end)
            if end < 0:
                raise _Short
            if follows.match(self.text, end + 1):
                break
            end += 1
        inside = self.text[start:end]
        if follows is _KEY_FOLLOWS or _SWALLOWED.search(inside):
            raise _Hopeless
        self.at = end + 1
        self._text(inside, True)

    def _text(self, inside: bytes, unescaped: bool) -> None:
        if not unescaped and _PLAIN.match(inside):
            self.out.append(b'"' + inside + b'"')
            return
        try:
            inside.decode()
        except UnicodeDecodeError:
            self.found[UTF8] = None
            inside = inside.decode(errors="replace").encode()
        if unescaped:
            self.found[QUOTES] = None
            inside = inside.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        else:
            mended = _HALF.sub(lambda half: b"\\ufffd" if half[1] else half[0], inside)
            if mended != inside:
                self.found[SURROGATES] = None
            inside = mended
        mended = re.sub(rb"[\x00-\x1f]", lambda byte: b"\\u%04x" % byte[0][0], inside)
        if mended != inside:
            self.found[CONTROL] = None
        self.out.append(b'"' + mended + b'"')

    def _bare(self) -> None:
        found = _BARE.match(self.text, self.at)
        if found is None:
            raise self._hopeless()
        self.at = found.end()
        word = found[0]
        if word in (b"true", b"false", b"null"):
            self.out.append(word)
            return
        if _NUMBER.match(word) and abs(float(word)) != float("inf"):
            self.out.append(word)
            return
        odd = _ODD_NUMBER.match(word)
        if word in _WORDS:
            self.found[NUMBERS] = None
            self.out.append(_WORDS[word])
        elif _NO_NUMBER.match(word) or _NUMBER.match(word):
            self.found[NAN] = None
            self.out.append(b"null")
        elif odd and any(byte in b"0123456789" for byte in word.split(b"e")[0].split(b"E")[0]):
            self.found[NUMBERS] = None
            sign = odd[1].replace(b"+", b"")
            self.out.append(
                sign + (odd[2] or b"0") + (b"." + odd[3] if odd[3] else b"") + (odd[4] or b"")
            )
        else:
            raise _Hopeless
