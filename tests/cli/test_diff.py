"""`opscope diff`: sides, runs in files and folders, JSON, and what is refused."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.analyse.runs import Did, made

import opscope.sessions
from opscope.analyse.compare import Change
from opscope.analyse.compare_runs import PARTS
from opscope.cli import main
from opscope.cli.sides import duration, percentage
from opscope.errors import UsageError
from opscope.model import Session

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Files named like `base3`, `new3` hold runs; `slow3` one that is twice as slow."""
    monkeypatch.chdir(tmp_path)

    def load(*paths: str, custom: object = ()) -> Session:
        (path,) = paths
        name = Path(path).name.partition(".")[0]
        time = 1000 + 13 * int(name[-1]) * (-1) ** int(name[-1])
        return made(Did("f", [time * (2 if name.startswith("slow") else 1)] * 6), at=int(name[-1]))

    def run(*args: str) -> tuple[int, str, str]:
        code = main(["diff", *args])
        return (code, *capsys.readouterr())

    monkeypatch.setattr(opscope.sessions, "load", load)
    return run


def five(name: str) -> list[str]:
    return [f"{name}{number}" for number in range(5)]


def rows(out: str) -> list[dict[str, object]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()]


def counts(out: str) -> tuple[object, object]:
    return rows(out)[0]["base_runs"], rows(out)[0]["new_runs"]


def test_a_table(command: Command) -> None:
    code, out, err = command(*five("base"), "--", *five("slow"), "--width", "90")
    assert (code, err) == (0, "")
    assert out.startswith("5 base runs against 5 new: 1 change beyond the noise\n")
    assert "f: python slower by 100%" in out
    assert max(map(len, out.splitlines())) <= 90


def test_one_run_is_no_five(command: Command, tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"base{number}").write_text("")
    (tmp_path / "link1").symlink_to("base1")
    for again in ("base1", "./base1", "link1"):
        code, _, err = command(*five("base"), again, "--", *five("slow"))
        assert code == 2
        assert f"{str(Path(again))!r} is named twice on one side" in err
    assert command("base1", "base1")[0] == 0  # each side for itself


def test_json_has_the_keys_of_the_contract(command: Command) -> None:
    code, out, err = command("--json", *five("base"), "--", *five("slow"))
    assert (code, err) == (0, "")
    found = rows(out)
    assert [tuple(row) for row in found] == [Change.KEYS] * len(found)
    by_part = {row["part"]: row for row in found}
    assert by_part["python"]["verdict"] == "slower"
    assert by_part["native"]["base_ns"] is None
    assert (by_part["wall"]["verdict"], by_part["wall"]["ratio"]) == (None, 2.0)


def test_notes_of_json_go_to_standard_error(command: Command) -> None:
    _, out, err = command("--json", "base1", "new2")
    assert rows(out)
    assert err.startswith("opscope: 1 and 1 runs are too few")


def test_two_paths_need_no_dashes(command: Command) -> None:
    _, out, _ = command("base1", "slow1", "--json")
    assert counts(out) == (1, 1)


def test_options_may_stand_on_both_sides(command: Command) -> None:
    _, out, _ = command("base1", "--op", "f*", "base2", "--", "--json", "slow1")
    assert counts(out) == (2, 1)


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["base1"],
        ["base1", "base2", "new1"],
        ["base1", "--"],
        ["--", "new1"],
        ["base1", "new1", "--min-effect", "50"],
        ["base1", "new1", "--min-effect", "us"],
        ["base1", "new1", "--nonsense"],
    ],
)
def test_a_wrong_command_line_is_2(command: Command, args: list[str]) -> None:
    code, out, err = command(*args)
    assert (code, out) == (2, "")
    assert "rror" in err
    assert "Traceback" not in err


def test_min_effect(command: Command) -> None:
    sides = [*five("base"), "--", *five("slow")]
    assert "no changes beyond" in command(*sides, "--min-effect", "1.5us")[1]
    assert "1 change beyond" in command(*sides, "--min-effect", "900ns")[1]


def test_op(command: Command) -> None:
    assert rows(command("base1", "slow1", "--json", "--op", "g*")[1]) == []
    assert "No operator to compare" in command("base1", "slow1", "--op", "g*")[1]


def test_each_file_and_each_folder_of_a_folder_is_a_run(command: Command, tmp_path: Path) -> None:
    for name in ("b/base1.opscope", "b/base2.json", "b/notes.txt", "b/.base5.opscope",
                 "b/base3/rank0.json", "b/base3/rank1.json", "n/new1.opscope"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b"{}")
    with zipfile.ZipFile(tmp_path / "b" / "base4.zip", "w") as archive:
        archive.writestr("one.json", "{}")
        archive.writestr("two.json", "{}")
    _, out, _ = command("b", "n", "--json")
    assert counts(out) == (4, 1)


@pytest.mark.parametrize("place", ["missing", "empty"])
def test_what_cannot_be_read_is_3(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    path = str(tmp_path / place)
    for args in (["diff", path, path], ["check", path, "--baseline", path]):
        assert main(args) == 3
        out, err = capsys.readouterr()
        assert (out, path in err) == ("", True)


@pytest.mark.parametrize(
    ("text", "value_ns"),
    [("50us", 50_000), ("50\N{MICRO SIGN}s", 50_000), ("1.5 ms", 1_500_000), ("2s", 2 * 10**9),
     ("0ns", 0), (".5us", 500)],
)  # fmt: skip
def test_times_are_read(text: str, value_ns: int) -> None:
    assert duration(text) == value_ns


def test_shares_are_read() -> None:
    assert [percentage(text) for text in ("10%", " 2.5 %", "0%", "300%")] == [0.1, 0.025, 0, 3]


@pytest.mark.parametrize("text", ["", "5", "us", "-5us", "5 hours", "1e3us", "nanus", "5%"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="50us"):
        duration(text)


@pytest.mark.parametrize("text", ["", "10", "%", "-10%", "nan%", "ten%"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(UsageError, match="10%"):
        percentage(text)


def test_the_documentation_lists_every_key_and_verdict() -> None:
    page = Path(__file__).parents[2] / "docs" / "commands" / "diff.md"
    text = page.read_text("utf-8").replace("`", " ").replace(",", " ").replace(";", " ")
    words = text.replace(":", " ").split()
    assert set(Change.KEYS) <= set(words)
    assert {*PARTS, "slower", "faster", "noise", "small", "new", "gone"} <= set(words)
