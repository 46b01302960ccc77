"""The only folder that may import a framework: one host for each, all behind one seam."""

from opscope.hosts.explain import explain
from opscope.hosts.registry import attached, available, chosen, probe_all
from opscope.hosts.seam import Host

__all__ = ["Host", "attached", "available", "chosen", "explain", "probe_all"]
