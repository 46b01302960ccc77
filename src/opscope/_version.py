"""The version, in one place: the build reads this file too."""

from __future__ import annotations

__version__ = "0.1.0"
