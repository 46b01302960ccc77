"""The words of opscope as plain data: kinds, numpy row types, the session."""

from opscope.model.columns import DROP, LINK, PAUSE, SPAN, SPAN_FORMAT, Rows, no_rows
from opscope.model.kinds import Flag, Kind, LinkKind, Phase, flag_names
from opscope.model.session import Finding, Lane, Op, Process, Session, Sight

__all__ = [
    "DROP",
    "LINK",
    "PAUSE",
    "SPAN",
    "SPAN_FORMAT",
    "Finding",
    "Flag",
    "Kind",
    "Lane",
    "LinkKind",
    "Op",
    "Phase",
    "Process",
    "Rows",
    "Session",
    "Sight",
    "flag_names",
    "no_rows",
]
