"""`opscope html`: where the page goes, and what is refused."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str, str]]


def test_it_writes_a_page(opscope_command: Command, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert opscope_command("html", "f", "-o", str(target)) == (0, "", "")
    assert target.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_without_a_name_it_is_report_html(
    opscope_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert opscope_command("html", "f")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_nothing_is_overwritten_unasked(opscope_command: Command, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    target.write_text("precious")
    code, _, err = opscope_command("html", "f", "-o", str(target))
    assert (code, target.read_text()) == (2, "precious")
    assert "--force" in err
    assert opscope_command("html", "f", "-o", str(target), "--force")[0] == 0
    assert target.read_text("utf-8") != "precious"


def test_another_ending_is_refused(opscope_command: Command, tmp_path: Path) -> None:
    code, _, err = opscope_command("html", "f", "-o", str(tmp_path / "page.json"))
    assert code == 2
    assert ".html" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("works", [True, False])
def test_open_opens_the_file(
    opscope_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: asked.append(url) or works)
    target = tmp_path / "a page.html"
    code, out, err = opscope_command("html", "f", "-o", str(target), "--open")
    assert (code, out) == (0, "")
    assert asked == [target.as_uri()]
    assert ("no browser could be started" in err) is not works


def test_redact_reaches_the_page(
    opscope_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "train")  # the process of the session is called train.py
    for name, flags in (("bare", ()), ("redacted", ("--redact",))):
        assert opscope_command("html", "f", "-o", str(tmp_path / f"{name}.html"), *flags)[0] == 0
    bare, redacted = ((tmp_path / f"{n}.html").read_text("utf-8") for n in ("bare", "redacted"))
    assert "train.py" in bare
    assert "train.py" not in redacted
