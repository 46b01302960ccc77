"""A program that hands work to threads in every way there is, and the truth about it.

Each call of the outer operator has a tag. Its leaves are operators of that tag only, and the number
of its plain operators is that of the tag, so where anything belongs can be told without opscope.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.pool import ThreadPool
from typing import Any

from tests.hosts.torch.ops import (
    custom,
    fresh,
    library,
    negative,
    torch,
)

import opscope

TAGGED = "(Tensor x, str way, int tag) -> Tensor"
#: How often each pattern runs on each of the two threads.
TIMES = 4
#: What a task, or the operator itself, is made of: a plain operator of each pattern.
PLAIN = {
    "earlier_pool": torch.sin,
    "own_pool": torch.cos,
    "thread": torch.exp,
    "lazy_pool": torch.tan,
    "nested": torch.erf,
    "thread_pool": torch.ceil,
    "outliving": torch.floor,
}
#: How many leaves a call has on its own thread and on others.
HERE, THERE = 1, 2


class Program:
    """Two threads that call the outer operator in all patterns at once, and the truth about it."""

    def __init__(self, outer: Callable[..., Any], inner: Callable[..., Any]) -> None:
        self.x = torch.ones(3)
        self.outer = outer("outer", self._outer, TAGGED)
        self.inner = inner("inner", self._inner, TAGGED)
        #: The outer operator as it stands in paths, and the phase in which it does the work.
        self.shown = getattr(self.outer, "shown", self.outer._qualname)
        self.phase = getattr(self.outer, "phase", "forward")
        self.tags = range(1, 2 * TIMES * len(PLAIN) + 1)
        self.leaf = {tag: custom(f"leaf{tag}", negative) for tag in self.tags}
        self.way: dict[int, str] = {}
        self.earlier = ThreadPoolExecutor(2)
        self.lazy = {tag: ThreadPoolExecutor(1) for tag in self.tags}
        self.late: list[tuple[threading.Event, threading.Thread]] = []
        both = threading.Barrier(2)
        for done in [self.earlier.submit(both.wait, 30) for _ in range(2)]:
            done.result(30)  # so both of its workers are there

    def __call__(self) -> None:
        together = threading.Barrier(2)
        size = len(self.tags) // 2
        threads = [
            threading.Thread(target=self._all, args=(together, self.tags[first : first + size]))
            for first in (0, size)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for go, thread in self.late:
            go.set()
            thread.join()
        for pool in (self.earlier, *self.lazy.values()):
            pool.shutdown()

    def _all(self, together: threading.Barrier, tags: range) -> None:
        for number, tag in enumerate(tags):
            together.wait(30)
            way = list(PLAIN)[number % len(PLAIN)]
            self.way[tag] = way
            self.outer(self.x, way, tag)
            if way == "lazy_pool":  # its worker began inside the operator, and now it is nobody's
                self.lazy[tag].submit(self._work, way, tag).result(30)

    def _work(self, way: str, tag: int) -> None:
        for _ in range(tag):
            PLAIN[way](self.x)
        self.leaf[tag](self.x)

    def _outer(self, x: Any, way: str, tag: int) -> Any:
        self._work(way, tag)
        getattr(self, f"_{way}")(way, tag)
        return torch.round(x)

    def _inner(self, x: Any, way: str, tag: int) -> Any:
        run([threading.Thread(target=self._work, args=(way, tag))])
        return torch.round(x)

    # --- the patterns -----------------------------------------------------------------------------

    def _earlier_pool(self, way: str, tag: int) -> None:
        for done in [self.earlier.submit(self._work, way, tag) for _ in range(THERE)]:
            done.result(30)

    def _own_pool(self, way: str, tag: int) -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._work, [way] * THERE, [tag] * THERE))

    def _thread(self, way: str, tag: int) -> None:
        run([threading.Thread(target=self._work, args=(way, tag)) for _ in range(THERE)])

    def _lazy_pool(self, way: str, tag: int) -> None:
        for _ in range(THERE):
            self.lazy[tag].submit(self._work, way, tag).result(30)

    def _nested(self, way: str, tag: int) -> None:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(self.inner, self.x, way, tag) for _ in range(THERE)]:
                done.result(30)

    def _thread_pool(self, way: str, tag: int) -> None:
        with ThreadPool(2) as pool:
            pool.starmap(self._work, [(way, tag)] * THERE)

    def _outliving(self, way: str, tag: int) -> None:
        go = threading.Event()

        def later() -> None:
            assert go.wait(30)
            self._work(way, tag)

        threads = [threading.Thread(target=later) for _ in range(THERE)]
        for thread in threads:
            thread.start()
            self.late.append((go, thread))


def run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


class Marked:
    """A function marked with `opscope.custom_op`."""

    phase = "none"

    def __init__(self, name: str, kernel: Callable[..., Any], schema: str) -> None:
        self._qualname = fresh(name)
        self.call = opscope.custom_op(self._qualname)(kernel)

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


class Function:
    """An autograd.Function that does the work in its forward, or else in its backward."""

    def __init__(self, name: str, kernel: Callable[..., Any], schema: str, *, back: bool) -> None:
        def forward(ctx: Any, x: Any, way: str, tag: int) -> Any:
            ctx.job = way, tag
            return x.detach() if back else kernel(x, way, tag)

        def backward(ctx: Any, slope: Any) -> Any:
            return kernel(slope, *ctx.job), None, None

        self._qualname = fresh(name).replace(":", "_")
        self.shown = f"_backward_{self._qualname}" if back else self._qualname
        self.phase = "backward" if back else "forward"
        body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        self.cls: Any = type(self._qualname, (torch.autograd.Function,), body)

    def __call__(self, x: Any, way: str, tag: int) -> Any:
        if self.phase == "forward":
            return self.cls.apply(x, way, tag)
        y = self.cls.apply(torch.ones(3, requires_grad=True), way, tag)
        return y.backward(torch.ones(3))


KINDS: dict[str, Callable[..., Any]] = {
    "custom_op": custom,
    "library": library,
    "library_cpu": partial(library, key="CPU"),
    "marked": Marked,
    "function": partial(Function, back=False),
    "backward": partial(Function, back=True),
}
