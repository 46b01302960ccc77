"""Other people's traces into sessions: one file a format, the kind recognised by content."""

from opscope.importers.building import Options
from opscope.importers.opening import Member, members
from opscope.importers.reading import FORMATS, read

__all__ = ["FORMATS", "Member", "Options", "members", "read"]
