"""The page: nothing a file holds is ever markup, nothing is fetched, little is ours."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from tests.builders import op, session, span
from tests.present.pages import Page, page_of

from opscope.model import Finding, Kind, Lane, Phase, Process, Session, Sight
from opscope.present import export
from opscope.present.page import as_data
from opscope.present.page.facts import RUN_TAKES_A_VALUE, title

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--<script>",
    "]]>'\"&amp;{{ 7 * 7 }}{% raw %}",
    "lone \ud800 and \udfff",
    "nul \0 bell \a",
    "rtl \u202e override \u2066",
    "lines \u2028 and \u2029",
    "x" * 300,
    "日本語 🧮",
)


def hostile() -> Session:
    """Every kind of text that a session holds, hostile in turn."""
    lines = []
    for number, name in enumerate(HOSTILE):
        at, made = 1000 * number, op(name, file=f"{name}.py", line=3, kind=name)
        lines += [
            span(3 * number + 1, made, Kind.CALL, at, at + 900, lane=name, phase=Phase.FORWARD),
            span(3 * number + 2, name, Kind.OP, at, at + 100, owner=3 * number + 1, lane=name),
            span(3 * number + 3, f"in {name}", Kind.CALL, at + 200, at + 300,
                 owner=3 * number + 1, lane=name),
        ]  # fmt: skip
    return session(
        lines,
        sight=[Sight(name, name, (name,), {name: name}) for name in HOSTILE],
        processes=[
            Process(
                pid=7,
                command=("python", *HOSTILE),
                versions=dict.fromkeys(HOSTILE, "1"),
                damage="".join(HOSTILE),
                broken=HOSTILE,
                notes=HOSTILE,
                findings=tuple(Finding(name, 2, (name,)) for name in HOSTILE),
                anchors=((0, 10**18),),
                start_ns=1,
                end_ns=99,
            )
        ],
    )


@pytest.fixture(scope="module")
def page() -> Page:
    return page_of(hostile())


@pytest.fixture(scope="module")
def plain() -> Page:
    return page_of(session([span(1, "A", Kind.CALL, 0, 100)]))


def test_names_are_never_markup(page: Page, plain: Page) -> None:
    shapes = [(tag, sorted(attributes)) for tag, attributes in page.tags]
    allowed = {(tag, tuple(sorted(attributes))) for tag, attributes in plain.tags}
    extra = {(tag, tuple(names)) for tag, names in shapes} - allowed
    # Of what a plain page has none, only these: lists of notes, oddities and what was not seen.
    assert extra <= {
        *((tag, ()) for tag in ("b", "div", "dl", "dt", "dd", "li", "ul", "small", "span")),
        *((tag, ("class",)) for tag in ("ul", "dl", "span", "p")),
        ("span", ("class", "title")),
    }
    assert len(page.scripts) == len(plain.scripts)
    assert [text for _, text in page.scripts if "alert(1)" in text and "\\u003c" not in text] == []


def test_names_are_shown_as_text(page: Page) -> None:
    for name in HOSTILE[:4]:
        assert " ".join(name.split()) in page.shown
    assert "\\ud800" in page.shown
    assert "\\x00" in page.shown
    assert "\\u202e" in page.shown
    assert not re.search("[\0\u202e\u2028\u2029\ud800-\udfff]", page.text)


def test_data_says_exactly_what_the_session_says(page: Page) -> None:
    names = {row["name"] for row in page.data("operators-data")["rows"]}
    assert names == {*HOSTILE, *(f"in {name}" for name in HOSTILE)}


def test_data_is_safe_inside_a_script_element() -> None:
    text = as_data({"</script>": ["<!--", "&", "\u2028\u2029", "\ud800", "é"]})
    assert text.isascii()
    assert not set("<>&") & set(text)


def test_it_can_be_written_to_a_file(tmp_path: Path) -> None:
    export(hostile(), tmp_path / "page.html")
    export(hostile(), tmp_path / "page.htm")
    written = (tmp_path / "page.html").read_bytes()
    assert written.decode("utf-8").startswith("<!DOCTYPE html>")
    assert written == (tmp_path / "page.htm").read_bytes()


def test_nothing_can_be_fetched(plain: Page) -> None:
    own = "".join([*plain.code, *plain.styles, *plain.words])
    assert not re.search(r"https?:|//\w+\.\w|@import|url\(|fetch\(|XMLHttp|import\(", own)
    for tag, attributes in plain.tags:
        assert "src" not in attributes
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form"}
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert attributes.get("href", "#").startswith("#")


def test_the_policy_lets_only_its_own_script_and_style_work(page: Page) -> None:
    (policy,) = [
        attributes["content"]
        for _, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == [_digest(text) for text in page.code]
    assert rules["style-src"] == [_digest(text) for text in page.styles]
    assert len(page.code) == 2
    assert "unsafe" not in policy


def _digest(text: str) -> str:
    octets = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(octets).decode()}'"


def test_no_script_makes_markup_of_text(plain: Page) -> None:
    for text in plain.code:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Func", text
        )


def test_it_is_small_beside_its_data(page: Page) -> None:
    data = sum(len(text) for attributes, text in page.scripts if "type" in attributes)
    assert len(page.text.encode()) - data < 400_000


def test_equal_sessions_make_equal_pages() -> None:
    assert page_of(hostile()).text == page_of(hostile()).text


def test_no_file_of_the_page_is_too_long() -> None:
    folder = Path(__file__).parents[2] / "src" / "opscope" / "present" / "page"
    files = [path for ending in ("js", "css", "j2") for path in folder.rglob(f"*.{ending}")]
    assert len(files) > 10
    assert [path.name for path in files if path.read_text("utf-8").count("\n") > 400] == []


def test_every_file_of_the_page_is_used() -> None:
    from opscope.present.page import assets

    folder = Path(assets.__file__).parent
    assert {path.name for path in (folder / "scripts").iterdir()} == {*assets.HEAD, *assets.SCRIPTS}
    assert {path.name for path in (folder / "styles").iterdir()} == set(assets.STYLES)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/usr/bin/python3 train.py --x 1", "train.py"),
        ("/v/bin/python /v/bin/opscope run -o a.opscope --lines --host torch /p/train.py --epochs",
         "train.py"),
        ("/v/bin/python -m opscope run --mode light -- train.py run x.py", "train.py"),
        ("opscope run --force -m my.tool -o b", "my.tool -o"),
        ("python -m my.tool run x.py", "my.tool run"),
        ("python -m opscope demo -o x", "opscope demo"),
        ("python run", "run"),
        ("python", ""),
    ],
)  # fmt: skip
def test_the_window_is_named_after_the_program(command: str, words: str) -> None:
    made = session([], processes=[Process(pid=7, command=tuple(command.split()))])
    assert title(made) == (words or "recording")


def test_options_of_run_that_take_a_value_are_known() -> None:
    from click import Option

    from opscope.cli.run import run

    options = [param for param in run.params if isinstance(param, Option)]
    valued = {word for each in options if not each.is_flag for word in each.opts} - {"-m"}
    assert set(RUN_TAKES_A_VALUE) == valued


def test_what_was_lost_and_not_seen_is_said() -> None:
    made = session(
        [span(1, "A", Kind.CALL, 0, 100)],
        lanes=[Lane("main")],
        sight=[Sight("torch", "2.13", ("calls",), {"cpu": "no clock for it"})],
        processes=[Process(pid=41, damage="cut at byte 77", notes=("rank 3",),
                           findings=(Finding("ends before starts", 12, ("event 5",)),))],
    )  # fmt: skip
    shown = page_of(made).shown
    for words in ("no clock for it", "Damaged: cut at byte 77", "rank 3", "12 ends before starts",
                  "at event 5, …", "not ended in order", "own overhead \u2013"):  # fmt: skip
        assert words in shown, words


def test_what_recording_cost_is_not_called_unknown_where_it_is_known() -> None:
    known = Process(pid=41, start_ns=1, end_ns=10**6, costs={"call": (10, 100)})
    lines = [span(1, "A", Kind.CALL, 0, 100)]
    shown = page_of(session(lines, processes=[known])).shown
    assert "own overhead <0.1 % of wall, 110 ns per event" in shown
    assert "what recording itself cost is not in this file" not in shown
    shown = page_of(session(lines, processes=[known, Process(pid=42)])).shown
    assert shown.count("what recording itself cost is not in this file") == 1
    assert "in 1 of 2 processes; of others it is not known" in shown


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (session([]), "Nothing was recorded"),
        (session([span(1, "x", Kind.OP, 0, 5)]), "No custom operator is in this recording"),
        (session([span(1, "x", Kind.OP, 0, 5)], ops=[op("A")]), "No custom operator was called"),
    ],
)
def test_a_page_of_nothing_says_so_and_what_to_do(made: Session, words: str) -> None:
    page = page_of(made)
    assert words in page.shown
    assert "@opscope.custom_op" in page.shown
    assert page.data("operators-data")["rows"] == []
    assert page.data("icicle-data")["roots"] == []
