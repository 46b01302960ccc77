"""One question, one function, one frozen answer. Pure functions of a session."""

from opscope.analyse.calls import CallRow, calls
from opscope.analyse.lanes import LaneRow, lanes
from opscope.analyse.lines import LineRow, SourceFile, lines, source_files
from opscope.analyse.links import LINK_KEYS, all_links, link_records
from opscope.analyse.notes import Note, notes
from opscope.analyse.overhead import Overhead, corrected, overhead
from opscope.analyse.own import Own, OwnTime, own_time
from opscope.analyse.paths import PathNode, paths
from opscope.analyse.quality import OddRow, quality
from opscope.analyse.rows import BESIDE_KEYS, PART_KEYS, TIME_KEYS, Timed
from opscope.analyse.select import select
from opscope.analyse.spans import SPAN_KEYS, span_records
from opscope.analyse.steps import StepRow, steps
from opscope.analyse.subs import SubRow, subs
from opscope.analyse.summary import OpRow, summary
from opscope.analyse.tracks import tracks

__all__ = [
    "BESIDE_KEYS",
    "LINK_KEYS",
    "PART_KEYS",
    "SPAN_KEYS",
    "TIME_KEYS",
    "CallRow",
    "LaneRow",
    "LineRow",
    "Note",
    "OddRow",
    "OpRow",
    "Overhead",
    "Own",
    "OwnTime",
    "PathNode",
    "SourceFile",
    "StepRow",
    "SubRow",
    "Timed",
    "all_links",
    "calls",
    "corrected",
    "lanes",
    "lines",
    "link_records",
    "notes",
    "overhead",
    "own_time",
    "paths",
    "quality",
    "select",
    "source_files",
    "span_records",
    "steps",
    "subs",
    "summary",
    "tracks",
]
