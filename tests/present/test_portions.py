"""What is written some thousand spans at a time is the same whatever the size of a portion."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from tests.builders import session
from tests.present.test_chrome import lines_of_a_session
from tests.present.test_perfetto import links_of_a_session

from opscope.analyse import span_records
from opscope.present import chrome, records, speedscope, write_chrome, write_csv, write_spans
from opscope.present.speedscope import write_speedscope

WRITERS = (write_chrome, write_csv, write_spans, write_speedscope)


@settings(max_examples=100, deadline=None)
@given(lines_of_a_session(), links_of_a_session)
def test_portions_join(lines: Any, links: Any) -> None:
    made = session(lines, links=links)

    def written() -> list[str]:
        files = [io.StringIO() for _ in WRITERS]
        for write, file in zip(WRITERS, files, strict=True):
            write(made, file)
        return [file.getvalue() for file in files]

    whole = written()
    with pytest.MonkeyPatch.context() as patch:
        for module in (chrome, records, speedscope):
            patch.setattr(module, "_PORTION", 2)
        assert written() == whole
    told = [json.dumps(record) for record in span_records(made)]
    assert whole[WRITERS.index(write_spans)].splitlines() == told
