"""Microseconds with fractions, as trace files write them, to whole nanoseconds, exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Below this many microseconds a double tells every nanosecond apart.
EXACT_US = float(2**43)
#: No time is further from zero (140 years): two of them can be added in nanoseconds.
MOST_US = float(2**52)

#: Texts that can be read together: whole microseconds, or all with three digits behind the point.
_WHOLE = re.compile(rb"-?[0-8]?\d{1,15}(?:,-?[0-8]?\d{1,15})*")
_THREE = re.compile(rb"-?\d{1,15}\.\d{3}(?:,-?\d{1,15}\.\d{3})*")


def from_floats(us: NDArray[np.float64]) -> Ints:
    """Of stamps below `EXACT_US`; with larger ones the last digits are lost already.

    Whole and fraction apart: their product with 1000 would be rounded twice.
    """
    whole: NDArray[np.float64] = np.floor(us)
    return whole.astype(np.int64) * 1000 + np.rint((us - whole) * 1000).astype(np.int64)


def from_texts(texts: Sequence[Any]) -> Ints:
    """Of stamps as decimal text (bytes or str), whatever their size. ValueError for other text,
    OverflowError for a time that has no room."""
    if texts and not isinstance(texts[0], str):
        together = b",".join(texts).replace(b'"', b"")
        if _WHOLE.fullmatch(together):
            return _parsed(together, len(texts)) * 1000
        if _THREE.fullmatch(together):
            return _parsed(together.replace(b".", b""), len(texts))
    return np.fromiter(map(_one, texts), np.int64, len(texts))


def known_floats(us: NDArray[np.float64]) -> tuple[Ints, Bools]:
    """The same, and which of them are times at all; 0 for the others."""
    known = np.abs(us) <= MOST_US
    return from_floats(us if known.all() else np.where(known, us, 0.0)), known


def known_texts(texts: Sequence[Any]) -> tuple[Ints, Bools]:
    """The same, and which of them are times at all; 0 for the others."""
    try:
        ns = from_texts(texts)
    except (ValueError, OverflowError):
        return _each(texts)
    known = np.abs(ns) <= int(MOST_US) * 1000
    return np.where(known, ns, 0), known


def _each(texts: Sequence[Any]) -> tuple[Ints, Bools]:
    ns = np.zeros(len(texts), np.int64)
    known = np.zeros(len(texts), bool)
    for place, text in enumerate(texts):
        try:
            stamp = _one(text)
        except (ValueError, OverflowError):
            continue
        known[place] = abs(stamp) <= MOST_US * 1000
        ns[place] = stamp if known[place] else 0
    return ns, known


def _parsed(together: bytes, count: int) -> Ints:
    ns: Ints = np.fromstring(together, np.int64, count, sep=",")
    return ns


def _one(text: Any) -> int:
    plain = bytes(text).decode("ascii") if not isinstance(text, str) else text
    plain = plain.strip().strip('"')
    if not any(digit.isdigit() for digit in plain):
        raise ValueError(f"{plain!r} is no time")
    if "e" in plain or "E" in plain:
        return round(float(plain) * 1000)
    whole, _, fraction = plain.partition(".")
    sign = -1 if whole.startswith("-") else 1
    thousandths = int((fraction + "0000")[:4] or 0)
    return int(whole or 0) * 1000 + sign * ((thousandths + 5) // 10)
