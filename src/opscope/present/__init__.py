"""Answers and sessions as tables, traces and lists. Deciding is done before; this is drawing."""

from opscope.present.chrome import chrome_events, write_chrome
from opscope.present.csv import write_csv
from opscope.present.export import FORMATS, Format, export, format_of
from opscope.present.lines import as_json, write_links, write_rows, write_spans
from opscope.present.lines_table import print_lines, render_lines
from opscope.present.quality import print_quality
from opscope.present.table import (
    REPORTS,
    print_report,
    print_summary,
    render_report,
    render_summary,
    report_rows,
)

__all__ = [
    "FORMATS",
    "REPORTS",
    "Format",
    "as_json",
    "chrome_events",
    "export",
    "format_of",
    "print_lines",
    "print_quality",
    "print_report",
    "print_summary",
    "render_lines",
    "render_report",
    "render_summary",
    "report_rows",
    "write_chrome",
    "write_csv",
    "write_links",
    "write_rows",
    "write_spans",
]
