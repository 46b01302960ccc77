"""Hot lines in the opened row of an operator, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.present.test_page_lines import sampled

from opscope.present import export


def test_an_opened_operator_shows_its_lines(watched: Any, tmp_path: Path, pictures: Path) -> None:
    file = tmp_path / "page.html"
    export(sampled(tmp_path, (2, 4)), file)
    tab = watched.tab
    tab.goto(file.as_uri())
    tab.locator(".operators .main-row").first.click()
    shown = tab.locator(".hot-lines")
    shown.wait_for()
    assert [text.strip() for text in tab.locator(".lines .source").all_inner_texts()] == [
        "x = '</script><script>alert(1)</script>'",
        "",
        "return x",
    ]
    cells = tab.locator(".lines tbody tr.hot td.num").all_inner_texts()
    assert [text.strip() for text in cells[0::4]] == ["33.3 %", "66.7 %"]
    assert [text.strip() for text in cells[1::4]] == ["40.0 %", "40.0 %"], "without a pointer too"
    assert "2 samples, about 6.00 µs in all calls" in shown.inner_text()
    shown.scroll_into_view_if_needed()
    tab.screenshot(path=str(pictures / "hot-lines.png"))
    wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    assert watched.errors == []
    assert watched.foreign() == []
