"""No name of a person, machine or folder is left; all else is as it was."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.builders import op, session, span

from opscope.analyse import summary
from opscope.analyse.redact import redacted
from opscope.model import Finding, Kind, Lane, Process, Session, Sight

ANN = Process(machine="node7.example.com 1b2c", command=("/home/ann/run.py",))


def texts(*names: str, process: Process = ANN, **more: list[str]) -> list[str]:
    """What becomes of names of spans."""
    return list(redacted(Session(names=names, processes=(process,)), **more).names)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/home/ann/x.py(12): f", "path-1/x.py(12): f"),
        ("/home/ann", "path-1"),
        ("in /home/ann/, twice: '/home/ann/x.py'", "in path-1/, twice: 'path-1/x.py'"),
        ("$/home/ann/x.py:12 f", "$path-1/x.py:12 f"),
        ("file=/home/ann/My Project/x.py!", "file=path-2/x.py!"),
        (r"C:\Users\Bob Lee\x.py(1): g", "path-2/x.py(1): g"),
        (r"see C:\\Users\\bob\\x.py", "see path-2/x.py"),
        (r"\\server\share\x.txt", "path-2/x.txt"),
        ("torch/nn/module.py(3): h", "path-2/module.py(3): h"),
        ("my dir (2)/x.py(3): h", "path-2/x.py(3): h"),
        ("../lib/x.py", "path-2/x.py"),
        ("~ann/bin/tool", "path-2/tool"),
        ("-I/home/ann/inc/x", "path-2/x"),
        ("https://git.corp/team/x", "https:path-2/x"),
        ("/root/x.py", "path-2/x.py"),
        ("root of ann's tree on node7", "root of user-1's tree on host-1"),
        ("node7.example.com, my_ann_op", "host-1, my_user-1_op"),
        ("/tmp/ann.json", "path-2/user-1.json"),
        ('a/b.py and a/c"d"', 'path-2/b.py and path-2/c"d"'),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert texts(name) == [expected]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "aten::mul",
            "annotate",
            "banner",
            "node77",
            "12 GB/s and/or I/O",
            "jit(f)/jit(main)/mul",
        ),
        *("void k<float, 4>(int*, int&)", "./x.py", "../x.py", "/tmp", "a // b", r"\d+\w", "root"),
        *("MyOp::pure_python", "", "/", "stage1/conv", "<string>", "ein: ij,jk->ik", "a\n(3): /"),
    ],
)
def test_what_stays(name: str) -> None:
    assert texts(name) == [name]


def test_equal_names_are_equal_and_others_are_not() -> None:
    many = [f"/home/{user}/{folder}/x.py" for user in ("ann", "bob") for folder in ("a", "b")]
    got = texts(*many, *many, "ann", "bob", "Ann", "node7", "node8")
    assert got[:4] == got[4:8]
    assert len(set(got)) == 9
    assert texts(*many) == texts(*many)


def test_stand_ins_that_are_there_are_not_given_again() -> None:
    assert texts("path-1/x.py", "/a/b/y.py", process=Process()) == ["path-1/x.py", "path-2/y.py"]
    assert texts("user-1", "/home/ann/y.py", "ann")[::2] == ["user-1", "user-2"]


def test_more_users_and_hosts() -> None:
    got = texts(
        "by carol@laptop", "on laptop.lan", users=["carol", "root", ""], hosts=["laptop.lan"]
    )
    assert got == ["by user-2@host-2", "on host-2"]


def everything() -> Session:
    ours = op(
        "/home/ann/m.py:f", qualified="/home/ann/m.py:f", file="/home/ann/My Lib/m.py", line=3
    )
    made = session(
        [span(1, ours, Kind.CALL, 0, 100), span(2, "/home/ann/x.py(1): f", Kind.OP, 1, 9, owner=1)],
        lanes=[Lane("main"), Lane("ann@node7", thread=7)],
        sight=[Sight("python", "1 (/opt/secret/py)", ("calls",), {"device": "no /opt/secret/so"})],
        processes=[
            Process(
                pid=41,
                command=("/opt/secret/python", "--out=/home/ann/a b/c.json", "secret/run", "-v"),
                machine="node7.example.com 1b2c",
                versions={"torch": "2 from /opt/secret/t"},
                damage="/home/ann/My Lib/f.opscope ends",
                broken=("hook of ann",),
                notes=("written on node7 by ANN",),
                findings=(Finding("odd on node7", 2, ("/home/ann/x.py(1): f", "17")),),
                complete=True,
            ),
            Process(pid=42, machine="node8 ffff"),
        ],
    )
    return replace(made, samples=({"file": "/home/ann/x.py", "lines": [1, ("ann", {"ann": 2})]},))


def test_nothing_is_left_in_any_table() -> None:
    before, after = everything(), redacted(everything())
    shown = repr((after.names, after.lanes, after.ops, after.samples, after.sight, after.processes))
    for secret in ("ann", "node7", "node8", "example", "1b2c", "secret", "My Lib", "a b", "home"):
        assert secret.lower() not in shown.lower()
    (entry,) = after.ops
    assert (entry.name, entry.key) == (after.names[0], f"python:{after.names[0]}#1")
    assert entry.file.endswith("/m.py")
    assert [row.key for row in summary(after)] == [entry.key]
    for table in ("spans", "links", "op_names", "pauses", "drops"):
        assert list(getattr(after, table)) == list(getattr(before, table))
    first, second = after.processes
    assert first.machine != second.machine
    assert first.command[1:] == ("--out=path-2/c.json", "path-3/run", "-v")
    kept = replace(after.processes[0], **{
        name: getattr(before.processes[0], name)
        for name in ("command", "machine", "versions", "damage", "broken", "notes", "findings")
    })  # fmt: skip
    assert kept == before.processes[0]
    assert redacted(after) is after


def test_a_session_with_nothing_to_hide_comes_back() -> None:
    plain = session([span(1, "f", Kind.CALL, 0, 9), span(2, "aten::mul", Kind.OP, 1, 2)])
    assert redacted(plain, users=["carol"], hosts=["laptop"]) is plain


@pytest.mark.parametrize("name", ["/a" * 50_000, "a/" * 50_000, "/" * 50_000, "a b " * 20_000,
                                  "/a " * 30_000, "C:\\x" * 30_000, "(1): /" * 20_000])  # fmt: skip
def test_long_names_take_no_time(name: str) -> None:
    start = time.process_time()
    texts(name)
    assert time.process_time() - start < 10
