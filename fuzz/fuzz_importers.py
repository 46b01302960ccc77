"""A fuzz target: whatever bytes a file holds, an importer makes a session of it or refuses it.

    python fuzz/fuzz_importers.py FOLDER -max_total_time=1800 -max_len=4096

needs `pip install atheris`. FOLDER keeps what was found; an empty one is filled with small files
of each format first. Anything but InputError is a fault, and so is a session that nothing can be
worked out of.
"""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

with atheris.instrument_imports(include=["opscope.importers"]):
    from opscope import analyse, importers
    from opscope.errors import InputError
    from opscope.importers import chrome, kineto, mxnet, xplane  # noqa: F401

#: More of a real trace than this is no small seed.
SMALL = 3_000


def one_input(data: bytes) -> None:
    """Read it, and ask what a report asks."""
    member = importers.Member("fuzz", lambda: io.BytesIO(data))
    try:
        session = importers.read(member, importers.Options(("a*",)))
    except InputError:
        return
    analyse.summary(session)


def seeds() -> dict[str, bytes]:
    """Small files of each format, by name."""
    from tests.importers.written import FORMATS, Written

    forest = [
        Written("aten::add", 0, 3, 90, -1),
        Written("my::one", 0, 5, 40, 0),
        Written("aten::exp", 0, 5, 20, 1),
        Written("aten::mul", 1, 4, 8, -1),
    ]
    found = {name.replace(" ", "_"): format.write(forest) for name, format in FORMATS.items()}
    for path in sorted((ROOT.parent / "shared" / "traces").glob("*/*.json*")):
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        if path.name.endswith("truth.json"):
            continue
        found[path.name] = data[:SMALL]
        found[path.name + ".end"] = data[-SMALL:]
    return found


def main() -> None:
    """Run libFuzzer with the arguments it was given."""
    for folder in map(Path, sys.argv[1:2]):
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in () if any(folder.iterdir()) else seeds().items():
            (folder / name).write_bytes(data)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
