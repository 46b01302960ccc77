"""A file like those of PyTorch's profiler, of any size, the same each time.

    python bench/kineto_like.py FILE EVENTS

Three threads run 200 custom operators `lib::op_k` under steps and layers, 12 deep with what they
call, and launch kernels; the backward thread of each runs their nodes. All lines are filled-in
templates, so that a million events take a few seconds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PID = 4184
THREADS = 3
OPERATORS = 200
#: Custom operators of a layer, layers of a step.
CALLS, LAYERS = 8, 6
#: Stamps are microseconds since the machine started.
BEGIN_NS = 1_365_627_862_757_064
#: Work begins so long after it was launched.
LAG_NS = 20_000
#: A node runs so long after its operator.
BACKWARD_NS = 300_000

HEAD: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "warpSize": 32, "numSms": 132}],
    "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1_728_000_000_000_000_000,
    "trace_id": "26D1A0C1F5B04E6E9C6A6F1B1B0B7C55",
}

_ATEN = (
    *("linear", "addmm", "matmul", "mm", "bmm", "view", "reshape", "transpose", "as_strided"),
    *("expand", "empty_strided", "empty_like", "copy_", "_to_copy", "to", "add", "add_", "mul"),
    *("mul_", "div", "sub", "softmax", "_softmax", "layer_norm", "native_layer_norm", "gelu"),
    *("silu", "sum", "mean", "pow", "rsqrt", "cat", "split", "select", "slice", "unsqueeze"),
)
_KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_{}<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_{}<c10::BFloat16>)"
)

#: What a number in a call's text is: a moment of its forward or backward (one more: of the work
#: launched then), a length, or the number of an operator, a launch, the call.
_FORTH, _BACK, _LENGTH, _OP, _LAUNCH, _CALL = 0, 2, 4, 5, 6, 7

#: What a call is made of: name, depth below the operator, begin and end in the call's own unit of
#: time. "op" and "inner" are custom operators, "launch" launches a kernel.
_FORWARD = (
    ("op", 0, 0, 100),
    ("aten", 1, 1, 6),
    ("aten", 2, 2, 4),
    ("aten", 1, 8, 90),
    ("aten", 2, 9, 88),
    ("inner", 3, 10, 70),
    ("aten", 4, 11, 60),
    ("aten", 5, 12, 20),
    ("aten", 5, 21, 58),
    ("aten", 6, 22, 57),
    ("aten", 7, 23, 56),
    ("aten", 8, 24, 55),
    ("launch", 9, 26, 50),
    ("aten", 4, 62, 68),
    ("aten", 3, 72, 86),
    ("launch", 4, 74, 84),
    ("aten", 1, 92, 98),
)
_BACKWARD = (
    ("engine", 0, 0, 100),
    ("node", 1, 2, 98),
    ("aten", 2, 4, 60),
    ("aten", 3, 6, 58),
    ("launch", 4, 10, 50),
    ("aten", 2, 62, 80),
    ("aten", 3, 64, 78),
    ("aten", 2, 82, 96),
)


def write(path: Path, events: int) -> int:
    """Write a file of so many events; its size in bytes."""
    with path.open("w", encoding="utf-8") as file:
        head = json.dumps(HEAD, indent=2)
        file.write(head[: head.rindex("}")].rstrip() + ',\n  "traceEvents": [\n')
        left = events
        for lines in _pieces():
            if len(lines) >= left:
                file.write(",\n".join(lines[:left]))
                break
            left -= len(lines)
            file.write(",\n".join(lines) + ",\n")
        file.write(f'\n  ],\n  "traceName": "{path.name}"\n}}\n')
    return path.stat().st_size


def _pieces() -> Iterator[list[str]]:
    """Lines without end, each an event: all threads take turns, a step each."""
    yield list(_names())
    cells = {(thread, k): _Cell(thread, k) for thread in range(THREADS) for k in range(OPERATORS)}
    moments = [BEGIN_NS] * THREADS
    calls = step = 0
    while True:
        for thread in range(THREADS):
            begun = moments[thread]
            for layer in range(LAYERS):
                entered = moments[thread]
                for _ in range(CALLS):
                    calls += 1
                    # A spread of operators and of times that looks like none.
                    unit = 40 + calls * 7919 % 101
                    cell = cells[thread, calls * 37 % OPERATORS]
                    yield cell.lines(calls, moments[thread] + 500, unit)
                    moments[thread] += 101 * unit + 1_000
                yield [_range(f"layer_{layer}", thread, entered + 100, moments[thread] - 100)]
            yield [_range(f"ProfilerStep#{step}", thread, begun, moments[thread])]
        step += 1


def _names() -> Iterator[str]:
    for thread in range(THREADS):
        for tid, name in ((_tid(thread), "python"), (_tid(thread) + 1, "pt_autograd")):
            args = f'{{"name": "thread {tid} ({name})"}}'
            yield (
                f'  {{"name": "thread_name", "ph": "M", "ts": {BEGIN_NS / 1000:.3f}, "pid": {PID}, '
                f'"tid": {tid}, "args": {args}}}'
            )


def _tid(thread: int) -> int:
    return PID + 10 * thread


def _range(name: str, thread: int, begin: int, end: int) -> str:
    return (
        f'  {{"ph": "X", "cat": "user_annotation", "name": "{name}", "pid": {PID}, '
        f'"tid": {_tid(thread)}, "ts": {begin / 1000:.3f}, "dur": {(end - begin) / 1000:.3f}, '
        f'"args": {{"External id": {begin % 2**31}, "Ev Idx": 0}}}}'
    )


class _Cell:
    """The events of one call of one operator on one thread, with its backward node: a text, and the
    (base, factor) of each number that it is filled with."""

    def __init__(self, thread: int, k: int) -> None:
        self._thread, self._k = thread, k
        self._lines: list[str] = []
        self._holes: list[tuple[int, int]] = []
        self._ops = self._launches = 0
        for tree, at, tid, stream in (
            (_FORWARD, _FORTH, _tid(thread), 7 + 10 * thread),
            (_BACKWARD, _BACK, _tid(thread) + 1, 8 + 10 * thread),
        ):
            for what, _, begin, end in tree:
                if what == "launch":
                    self._launch(at, tid, stream, begin, end)
                else:
                    self._op(what, at, tid, begin, end)
        self._text = "\n".join(self._lines)

    def lines(self, call: int, begin: int, unit: int) -> list[str]:
        """`call` numbers the calls of the file."""
        back = begin + BACKWARD_NS
        bases = (
            (begin, unit, 1000),
            (begin + LAG_NS, unit, 1000),
            (back, unit, 1000),
            (back + LAG_NS, unit, 1000),
            (0, unit, 1000),
            (call * self._ops, 1, 1),
            (call * self._launches, 1, 1),
            (call, 0, 1),
        )
        # Exact: whole nanoseconds, divided last.
        values = []
        for which, number in self._holes:
            base, factor, divisor = bases[which]
            values.append((base + number * factor) / divisor)
        return (self._text % tuple(values)).split("\n")

    def _op(self, what: str, at: int, tid: int, begin: int, end: int) -> None:
        k = self._k
        node = f"GeneratedBackwardFor_lib_op_{k}_defaultBackward"
        name = {
            "op": f"lib::op_{k}",
            "inner": f"lib::op_{(k * 7 + 1) % OPERATORS}",
            "node": node,
            "engine": f"autograd::engine::evaluate_function: {node}",
            "aten": f"aten::{_ATEN[(k + self._ops * 7) % len(_ATEN)]}",
        }[what]
        holes = [(at, begin), (_LENGTH, end - begin), (_OP, self._ops)]
        args = '"External id": %d, "Record function id": 0, '
        if what in ("op", "node", "engine"):
            thread = 0 if what == "op" else self._thread + 1
            args += f'"Sequence number": %d, "Fwd thread id": {thread}, '
            holes.append((_CALL, 0))
        if what in ("op", "inner", "aten"):
            rows = 64 << (k + self._ops) % 5
            args += (
                f'"Input type": ["c10::BFloat16", "Scalar"], "Input Dims": [[{rows}, 1024], []], '
            )
        holes.append((_OP, self._ops))
        self._ops += 1
        self._add(
            f'"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": {PID}, "tid": {tid}, '
            f'"ts": %.3f, "dur": %.3f, "args": {{{args}"Ev Idx": %d}}',
            *holes,
        )
        if what in ("op", "node"):
            phase = '"ph": "s"' if what == "op" else '"ph": "f", "bp": "e"'
            self._add(
                f'{phase}, "id": %d, "pid": {PID}, "tid": {tid}, "ts": %.3f, "cat": "fwdbwd", '
                '"name": "fwdbwd"',
                *((_CALL, 0), (at, begin)),
            )

    def _launch(self, at: int, tid: int, stream: int, begin: int, end: int) -> None:
        """A runtime call in the operator that came just before, its kernel, and their arrow."""
        functor = _ATEN[(self._k + self._launches) % len(_ATEN)]
        numbers = (_OP, self._ops - 1), (_LAUNCH, self._launches)
        length = _LENGTH, end - begin
        self._launches += 1
        self._add(
            f'"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {PID}, '
            f'"tid": {tid}, "ts": %.3f, "dur": %.3f, "args": {{"External id": %d, "cbid": 211, '
            '"correlation": %d}',
            *((at, begin), length, *numbers),
        )
        self._add(
            f'"ph": "X", "cat": "kernel", "name": "{_KERNEL.format(functor, functor)}", '
            f'"pid": 0, "tid": {stream}, "ts": %.3f, "dur": %.3f, "args": {{"External id": %d, '
            f'"correlation": %d, "queued": 0, "device": 0, "context": 1, "stream": {stream}, '
            '"registers per thread": 32, "shared memory": 0, "blocks per SM": 1.939394, '
            '"warps per SM": 7.757576, "grid": [256, 1, 1], "block": [128, 1, 1], '
            '"est. achieved occupancy %%": 12}',
            *((at + 1, begin), length, *numbers),
        )
        arrow = '"id": %d, "ts": %.3f, "cat": "ac2g", "name": "ac2g"'
        self._add(f'"ph": "s", "pid": {PID}, "tid": {tid}, {arrow}', numbers[1], (at, begin))
        self._add(
            f'"ph": "f", "bp": "e", "pid": 0, "tid": {stream}, {arrow}', numbers[1], (at + 1, begin)
        )

    def _add(self, fields: str, *holes: tuple[int, int]) -> None:
        self._lines.append(f"  {{{fields}}}")
        self._holes += holes


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    size = write(Path(sys.argv[1]), int(sys.argv[2]))
    print(f"{size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
