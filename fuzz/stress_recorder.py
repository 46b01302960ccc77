"""What programs do to a recorder, for hours, on both; everything that comes out is checked.

    python fuzz/stress_recorder.py [--minutes 10] [--seed N] [--recorder python|native]

Threads that nest, recurse, raise, die and record from signal handlers and finalizers; operators of
the engine; pauses, flushes, starts and stops in the middle; forks; interpreters that end while
threads record. Every session must read back whole. Prints each seed, so that a failure can be had
again. tests/record/native/sanitize.sh runs it under AddressSanitizer.
"""

from __future__ import annotations

import argparse
import contextvars
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import opscope
from opscope import custom_op
from opscope import engine as nd
from opscope.model import Kind, Session
from opscope.record import Recorder, Writer, extension, recorder_class, scope
from opscope.store import MemorySink

#: No forks while other threads are busy, see `--calm-forks`.
calm = False


class Expected(Exception):
    """What operators raise here."""


@custom_op
def recursive(dice: random.Random, depth: int) -> int:
    """Nests, raises now and then, and keeps company with blocks, generators and contexts."""
    kind = dice.randrange(9)
    if kind == 0:
        raise Expected
    if kind == 1:
        with custom_op("block"):
            pass
    if kind == 2:
        return sum(items(dice.randrange(4)))
    if kind == 3:
        return contextvars.copy_context().run(leaf)
    if kind == 4:
        Knot()
    if depth <= 0:
        return leaf()
    return recursive(dice, depth - 1) + 1


@custom_op
def leaf() -> int:
    return 1


@custom_op
def items(count: int) -> Any:
    for number in range(count):
        yield leaf() + number


class Knot:
    """Garbage whose finalizer records."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        leaf()


def calls(dice: random.Random, until: float) -> None:
    while time.monotonic() < until:
        with suppress(Expected):
            recursive(dice, dice.randrange(12))


def short_threads(dice: random.Random, until: float) -> None:
    """Threads that die with rows in their buffer."""
    while time.monotonic() < until:
        threads = [threading.Thread(target=leaf) for _ in range(dice.randrange(1, 6))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def operators(dice: random.Random, until: float) -> None:
    """Operators of the engine, failures included."""
    x = nd.ones((4, 4))
    while time.monotonic() < until:
        x = x + 1.0
        if dice.random() < 0.02:
            nd.push_sync(lambda: 1 // 0, name="fails")
        if dice.random() < 0.05:
            with suppress(ZeroDivisionError):
                nd.waitall()


def garbage(dice: random.Random, until: float) -> None:
    while time.monotonic() < until:
        Knot()
        if dice.random() < 0.1:
            gc.collect(dice.randrange(3))
        time.sleep(0.001)


WORKS: tuple[Callable[[random.Random, float], None], ...] = (
    calls, calls, short_threads, operators, garbage,
)  # fmt: skip


def sound(session: Session) -> None:
    """Whatever was recorded is whole."""
    spans = session.spans
    ids = spans["id"].tolist()
    assert len(set(ids)) == len(ids)
    assert (spans["start_ns"] <= spans["end_ns"]).all()
    assert set(spans["owner"].tolist()) <= {*ids, 0} or len(session.drops)
    assert (spans["lane"] < len(session.lanes)).all()
    assert (spans["name"] < len(session.names)).all()
    (process,) = session.processes
    assert process.complete
    assert process.broken == (), process.broken


def recording(dice: random.Random) -> None:
    """One recording of several busy threads, with its edges in the middle of everything."""
    until = time.monotonic() + dice.random() * 1.5
    seeds = [dice.random() for _ in range(dice.randrange(1, 7))]
    works = [dice.choice(WORKS) for _ in seeds]
    threads = [
        threading.Thread(target=work, args=(random.Random(seed), until), daemon=True)
        for work, seed in zip(works, seeds, strict=True)
    ]
    for thread in threads[::2]:
        thread.start()
    handler = signal.signal(signal.SIGALRM, lambda number, frame: leaf())
    if dice.random() < 0.5:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.003)
    profile = opscope.profile()
    try:
        profile.start()
        for thread in threads[1::2]:
            thread.start()
        while time.monotonic() < until:
            act = dice.randrange(8)
            if act == 0:
                profile.pause()
            elif act == 1:
                profile.resume()
            elif act == 2:
                profile.step()
            elif act == 3:
                profile.flush()
            elif act == 4:
                sound_so_far(profile.session)
            elif act == 5 and dice.random() < 0.3 and not calm:
                fork(dice)
            else:
                time.sleep(dice.random() * 0.02)
        if dice.random() < 0.5:
            profile.resume()
    finally:
        profile.stop()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    sound(profile.session)
    assert scope.held() is None


def sound_so_far(session: Session) -> None:
    assert (session.spans["start_ns"] <= session.spans["end_ns"]).all()


def fork(dice: random.Random) -> None:
    """A child that records for itself, and ends."""
    child = os.fork()
    if not child:
        code = 9
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            leaf()
            with opscope.profile() as again:
                for _ in range(dice.randrange(50)):
                    leaf()
            sound(again.session)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = _ending_of(child, 60 if calm else 600)
    if status is None and calm:
        print("a child hung, as it may in the malloc of AddressSanitizer; it does not count")
    else:
        assert status == 0, f"the child ended with {status} (None: it hung)"


def _ending_of(child: int, seconds: float) -> int | None:
    """The status a child ends with; None, and it is killed, when that takes too long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def forks(dice: random.Random) -> None:
    """Children of a program that is recorded and has no busy thread but one."""
    with opscope.profile() as profile:
        for _ in range(5):
            with suppress(Expected):
                recursive(dice, 5)
            profile.flush()  # the writer's thread sleeps now
            fork(dice)
    sound(profile.session)


def raw(dice: random.Random) -> None:
    """The recorder alone: small bounds, ends by anybody; all that went in comes out."""
    sink = MemorySink()
    recorder = Recorder(sink, bound=dice.choice((0, 0, 1, 7, 512, 5000)))
    writer = Writer(recorder, flush_s=dice.choice((0.001, 0.25)))
    writer.start()
    begun: list[int] = []
    put = []

    def work(seed: float) -> None:
        mine, done = random.Random(seed), 0
        for _ in range(mine.randrange(20_000)):
            act = mine.randrange(4)
            if act == 0:
                begun.append(recorder.begin(Kind.CALL, recorder.name("f"), owner=0))
            elif act == 1 and begun:
                with suppress(IndexError, ValueError):  # another thread was quicker
                    recorder.end(begun.pop(mine.randrange(len(begun))))
            elif act == 2:
                recorder.put((recorder.next_id(), *[0] * 7, 1, 2, 0, -1))
                done += 1
            else:
                frame = scope.enter(recorder, 0)
                scope.leave(frame, mine.randrange(3))
        put.append(done)

    threads = [threading.Thread(target=work, args=(dice.random(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.closed = True
    writer.finish()
    session = sink.session()
    ids = session.spans["id"]
    assert len(np.unique(ids)) == len(ids)
    assert len(put) == len(threads)
    plain = int((session.spans["kind"] == 0).sum())
    assert plain <= sum(put) <= plain + int(session.drops["count"].sum())


EXITS = """
import os, sys, threading, opscope
from opscope import custom_op
@custom_op
def leaf(n):
    return n and leaf(n - 1)
def forever():
    while True:
        leaf(5)
profile = opscope.profile().start()
for _ in range(3):
    threading.Thread(target=forever, daemon=True).start()
leaf(20)
class Late:
    def __del__(self):
        leaf(3)
keep = Late()
{}
"""
ENDINGS = ("", "sys.exit(0)", "profile.stop()", "os._exit(0)", "keep.me = keep; del keep")


def exits(dice: random.Random) -> None:
    """An interpreter that ends while daemon threads record."""
    ended = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-X",
            "faulthandler",
            "-c",
            EXITS.format(dice.choice(ENDINGS)),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Error" not in ended.stderr, ended.stderr


SCENARIOS = (recording, recording, recording, raw, raw, exits, forks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="run this one scenario")
    parser.add_argument("--recorder", choices=("python", "native"), help="only this one")
    parser.add_argument(
        "--calm-forks",
        action="store_true",
        help="fork without other busy threads only: else AddressSanitizer may hang in the child",
    )
    options = parser.parse_args()
    global calm
    calm = options.calm_forks
    warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is the point
    faulthandler.enable()
    kinds = [options.recorder] if options.recorder else ["python", "native"]
    if extension.native is None and "native" in kinds:
        print(f"the native recorder is not there: {extension.missing}", file=sys.stderr)
        return 2
    until = time.monotonic() + options.minutes * 60
    first = options.seed if options.seed is not None else random.randrange(10**9)
    number = 0
    while time.monotonic() < until:
        for kind in kinds:
            os.environ[extension.VARIABLE] = kind
            seed = first + number
            dice = random.Random(seed)
            scenario = dice.choice(SCENARIOS)
            print(
                f"{kind} --seed {seed} {scenario.__name__} ({recorder_class().__name__})",
                flush=True,
            )
            faulthandler.dump_traceback_later(600, exit=True)
            scenario(dice)
            faulthandler.cancel_dump_traceback_later()
        number += 1
        if options.seed is not None:
            break
    print(f"{number} scenarios on {', '.join(kinds)}: all sound")
    return 0


if __name__ == "__main__":
    sys.exit(main())
