"""Pure: who nests in whom, who owns what, what a call's time was."""

from opscope.attribution.belonging import among, looking_through
from opscope.attribution.calls import Attribution, attribute
from opscope.attribution.nesting import Nesting, nest
from opscope.attribution.owners import ancestors, owner_rows
from opscope.attribution.parts import UNKNOWN, Parts
from opscope.attribution.paths import BACKWARD_PREFIX, Paths
from opscope.attribution.running import Running

__all__ = [
    "BACKWARD_PREFIX",
    "UNKNOWN",
    "Attribution",
    "Nesting",
    "Parts",
    "Paths",
    "Running",
    "among",
    "ancestors",
    "attribute",
    "looking_through",
    "nest",
    "owner_rows",
]
