"""`opscope run`: the program sees what it sees under plain Python."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

SEE = """
import json, os, sys

def typed(x: int): pass

main = sys.modules["__main__"]
facts = {
    "argv": sys.argv, "name": __name__, "file": __file__, "path": sys.path, "cwd": os.getcwd(),
    "main": vars(main) is globals(), "package": __package__, "spec": __spec__ and __spec__.name,
    "loader": type(__loader__).__name__, "cached": globals().get("__cached__"), "doc": __doc__,
    "builtins": type(__builtins__).__name__, "stdin": sys.stdin.read(),
    "typed": repr(typed.__annotations__),
    "stdout": [sys.stdout.errors, sys.stdout.encoding, sys.stdout.line_buffering],
    "stderr": [sys.stderr.errors, sys.stderr.encoding],
    "names": sorted(name for name in globals() if name != "__annotations__"),
}
print(json.dumps(facts, indent=1))
work()
"""  # fmt: skip


def same(python: Any, opscope_run: Any, *args: str) -> Any:
    """The program says the same both ways, and nothing of ours gets between."""
    plain = python(*args, input=b"some input\n")
    ours = opscope_run(*args, input=b"some input\n")
    assert plain.returncode == 0, plain.stderr
    assert ours.stdout == plain.stdout
    assert re.fullmatch(rb"opscope: recorded to out\.opscope .*\r?\n", ours.stderr)
    assert ours.returncode == 0
    return ours


@pytest.mark.parametrize("name", ["s.py", "sub/s.py", "no ending", "-odd.py"])
def test_a_script(python: Any, opscope_run: Any, script: Any, calls: Any, name: str) -> None:
    script(SEE, name)
    # What looks like an option of ours behind the script is the script's.
    after = ["--", name] if name.startswith("-") else [name]
    if name.startswith("-"):
        assert opscope_run(*after, input=b"").returncode == 0
    else:
        same(python, opscope_run, *after, "-o", "x", "--host", "--force", "-m", "--", "--help", "")
    assert calls() == 1


def test_a_script_by_a_link_and_by_its_full_name(
    python: Any, opscope_run: Any, script: Any, folder: Path
) -> None:
    script(SEE, "real/s.py")
    (folder / "link.py").symlink_to("real/s.py")
    same(python, opscope_run, "link.py")
    same(python, lambda *a, **b: opscope_run("--force", *a, **b), str(folder / "real" / "s.py"))


@pytest.mark.parametrize("name", ["mod", "pkg.inner", "pkg", "deep.er.mod"])
def test_a_module(python: Any, opscope_run: Any, script: Any, calls: Any, name: str) -> None:
    script(SEE, "mod.py")
    script("", "pkg/__init__.py", head="")
    script(SEE, "pkg/inner.py")
    script(SEE, "pkg/__main__.py")
    script(SEE, "deep/er/mod.py")
    same(python, opscope_run, "-m", name, "-o", "x", "-m", "other", "--", "--force")
    assert calls() == 1


def test_a_module_name_that_stands_close(opscope_run: Any, script: Any, calls: Any) -> None:
    script("import sys; assert sys.argv[1:] == ['-o', 'y'], sys.argv; work()", "mod.py")
    assert opscope_run("-mmod", "-o", "y").returncode == 0
    assert calls() == 1


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_folder_and_an_archive(
    python: Any, opscope_run: Any, script: Any, calls: Any, folder: Path, kind: str
) -> None:
    script(SEE, "app/__main__.py")
    name = "app"
    if kind == "zip":
        name = "app.anything"
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.write(folder / "app" / "__main__.py", "__main__.py")
    same(python, opscope_run, name, "-o", "x")
    assert calls() == 1


def test_functions_of_the_script_can_be_pickled(
    python: Any, opscope_run: Any, script: Any, calls: Any
) -> None:
    text = """
    import pickle, threading
    class Thing: pass
    def check():
        assert pickle.loads(pickle.dumps(work)) is work
        assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
        work()
    check()
    threading.Thread(target=lambda: (threading.main_thread().join(), check())).start()
    """
    script(text, "s.py")
    script(text, "mod.py")
    for args in (["s.py"], ["-m", "mod"]):
        same(python, lambda *a, **b: opscope_run("--force", *a, **b), *args)
        assert calls() == 2


def test_standard_output_is_the_scripts_byte_for_byte(
    python: Any, opscope_run: Any, script: Any
) -> None:
    script("""
    import sys
    sys.stdout.buffer.write(bytes(range(256)))
    sys.stdout.flush()
    print("\\N{SNAKE}", end="")
    try:
        print("\\udcff")
    except UnicodeEncodeError:
        print("no such letter", end="")
    """)
    same(python, opscope_run, "s.py")


def test_the_command_of_an_installation_works_as_well(
    python: Any, script: Any, calls: Any, folder: Path
) -> None:
    """As `bin/opscope`, whose folder stands first on the path."""
    entry = script(
        "import sys; from opscope.cli import main; sys.exit(main())", "bin/opscope", head=""
    )
    script("import pkg.other; import sys; print(sys.path[0]); work()", "pkg/inner.py")
    script("", "pkg/other.py", head="")
    plain = python("-m", "pkg.inner")
    ours = python(entry, "run", "-o", "out.opscope", "-m", "pkg.inner")
    assert (ours.stdout, ours.returncode) == (plain.stdout, 0), ours.stderr
    assert calls() == 1


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the safe path came with 3.11")
def test_a_safe_path_stays_safe(python: Any, script: Any) -> None:
    script("import sys; print(sys.path)", "sub/s.py", head="")
    plain = python("-P", "sub/s.py")
    ours = python("-P", "-m", "opscope", "run", "-o", "out.opscope", "sub/s.py")
    assert (ours.stdout, ours.returncode) == (plain.stdout, 0), ours.stderr
