"""What a framework's own profiler saw, made into spans that have owners, after the fact.

For hosts that get their operators from such a profiler, and for importers of its files. All pure.
"""

from opscope.attribution.late.backward import Forward
from opscope.attribution.late.events import Customs, Events, Role
from opscope.attribution.late.join import Context, Joined, join

__all__ = ["Context", "Customs", "Events", "Forward", "Joined", "Role", "join"]
