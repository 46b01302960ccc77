"""What recording costs PyTorch: CPU time per training step, opscope beside torch.profiler.

    python bench/torch_overhead.py [--rounds 21] [--json FILE]

One process, because what is compared must meet the same caches and the same machine: each round
runs every configuration once, in random order, and a ratio is of two figures of one round. What a
profiler leaves behind would show as a drift of the step without one, which is timed before any
ran, too. CPU time is that of all threads, opscope's writer included. Starting is not timed, nor
are the first steps after it. Stopping is, apart; for opscope it includes making the session. A
round is short enough for one window of opscope's; were events converted meanwhile all the same, it
is measured again.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity

import opscope
from opscope.model import Kind

Step = Callable[[], None]
#: By configuration: (ms per step, ms of the stop) of each round.
Found = dict[str, list[tuple[float, float]]]

OFF, LIGHT, FULL = "off", "opscope light", "opscope full"
ALONE, STACKS = "torch, all threads", "torch, stacks + shapes"
#: (numerator, denominator, kind of step it holds for, at most)
BUDGETS = (
    (FULL, ALONE, "overhead-bound", 1.05),
    (FULL, ALONE, "heavier", 1.05),
    (LIGHT, OFF, "heavier", 1.10),
)
#: Seconds of steps a measurement, steps before it.
LENGTH_S, BEFORE = 0.05, 3


@torch.library.custom_op("opscope_bench::scale", mutates_args=())
def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by + 1.0


scale.register_autograd(
    lambda ctx, grad: (grad * ctx.by, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def network(width: int, plain: int, batch: int = 16, blocks: int = 4) -> Step:
    """One step of SGD on a network of blocks (a linear layer, a custom_op, a Function) and plain
    layers (linear, ReLU)."""
    torch.manual_seed(1)
    layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(blocks + plain))
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)
    data = torch.randn(batch, width)

    def step() -> None:
        optimizer.zero_grad()
        x = data
        for number, layer in enumerate(layers):
            x = layer(x)
            x = Square.apply(scale(x, 0.5)) if number < blocks else torch.relu(x)
        x.mean().backward()
        optimizer.step()

    return step


#: The budgets hold for four blocks; "dense" is nothing but blocks, and shows where they end.
STEPS = {
    "overhead-bound": lambda: network(32, 76),
    "heavier": lambda: network(256, 24),
    "dense": lambda: network(32, 0, blocks=16),
}


class Nothing:
    def start(self) -> None: ...
    def stop(self) -> None: ...


def configurations(folder: Path) -> dict[str, Callable[[], Any]]:
    def ours(mode: str) -> Any:
        return opscope.profile(output=folder / f"{mode}.opscope", force=True, mode=mode)

    def torchs(**options: Any) -> Any:
        return torch.profiler.profile(activities=[ProfilerActivity.CPU], **options)

    threads = _ExperimentalConfig(profile_all_threads=True)
    return {
        OFF: Nothing,
        LIGHT: lambda: ours("light"),
        FULL: lambda: ours("full"),
        ALONE: lambda: torchs(experimental_config=threads),
        STACKS: lambda: torchs(with_stack=True, record_shapes=True),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=21, help="paired rounds (default 21)")
    parser.add_argument("--json", type=Path, help="a file for the figures of every round")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"opscope {opscope.__version__}, torch {torch.__version__}, Python "
        f"{platform.python_version()}, {os.cpu_count()} CPUs; {chosen.rounds} paired rounds"
    )
    steps = {name: make() for name, make in STEPS.items()}
    fresh = {name: unprofiled(step) for name, step in steps.items()}  # before any profiler
    every: dict[str, Found] = {}
    for name, step in steps.items():
        count = max(int(LENGTH_S * 1e3 / fresh[name]), 1)
        with tempfile.TemporaryDirectory() as folder:
            every[name], again = rounds(configurations(Path(folder)), step, chosen.rounds, count)
        report(name, every[name], fresh[name], count, calls_of(step))
        if again:
            print(f"  measured again, as events were converted meanwhile: {again}")
    if chosen.json:
        chosen.json.write_text(json.dumps(every, indent=1), "utf-8")


def unprofiled(step: Step) -> float:
    """ms per step while no profiler has run yet."""
    for _ in range(20):
        step()
    return statistics.median(measured(Nothing(), step, 20)[0] for _ in range(9))


def rounds(
    made: dict[str, Callable[[], Any]], step: Step, count: int, steps: int
) -> tuple[Found, int]:
    """The figures of every round, and how many measurements had to be made again."""
    found: Found = {name: [] for name in made}
    for make in made.values():  # what the first start in a process costs is not of interest
        measured(make(), step, 2)
    order, again = list(made), 0
    for _ in range(count):
        random.shuffle(order)
        for name in order:
            for _ in range(5):
                profile = made[name]()
                figures = measured(profile, step, steps)
                if not emptied(profile):
                    break
                again += 1
            found[name].append(figures)
            del profile
    return found, again


def measured(profile: Any, step: Step, steps: int) -> tuple[float, float]:
    """CPU ms per step, and of the stop."""
    gc.collect()
    profile.start()
    for _ in range(BEFORE):
        step()
    begun = time.process_time_ns()
    for _ in range(steps):
        step()
    done = time.process_time_ns()
    profile.stop()
    ended = time.process_time_ns()
    return (done - begun) / steps / 1e6, (ended - done) / 1e6


def emptied(profile: Any) -> bool:
    """Whether opscope converted events while the steps ran."""
    if not isinstance(profile, opscope.profile):
        return False
    return any("was emptied" in note for seen in profile.session.processes for note in seen.notes)


def calls_of(step: Step) -> int:
    """How many calls of custom operators a step makes."""
    with opscope.profile(mode="light") as profile:
        step()
    return int((profile.session.spans["kind"] == Kind.CALL).sum())


def report(name: str, found: Found, fresh: float, steps: int, calls: int) -> None:
    off = statistics.median(each for each, _ in found[OFF])
    print(
        f"\n{name}: a step of {off:.2f} ms ({fresh:.2f} before any profiler) with {calls} calls of "
        f"custom operators; {steps} steps a round\n  {'CPU time':24} ms/step    / off (quartiles)"
        "       us/call  stop, ms"
    )
    for title, figures in found.items():
        low, middle, high = ratios(found, title, OFF)
        pairs = zip(figures, found[OFF], strict=True)
        more = statistics.median((a - b) * 1e3 / calls for (a, _), (b, _) in pairs)
        step_ms, stop_ms = (statistics.median(column) for column in zip(*figures, strict=True))
        print(
            f"  {title:24} {step_ms:7.2f}   {middle:6.3f} ({low:.3f}-{high:.3f})   {more:+9.1f}"
            f"  {stop_ms:8.1f}"
        )
    for ours, theirs, only, most in BUDGETS:
        if name.startswith(only):
            low, middle, high = ratios(found, ours, theirs)
            verdict = "PASS" if middle <= most else "over"
            least = min(found[ours])[0] / min(found[theirs])[0]
            print(
                f"  {ours} / {theirs}: {middle:.3f} ({low:.3f}-{high:.3f}; least / least "
                f"{least:.3f}), budget {most:.2f}: {verdict}"
            )


def ratios(found: Found, ours: str, theirs: str) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile of the ratios of pairs."""
    pairs = zip(found[ours], found[theirs], strict=True)
    each = [a / b for (a, _), (b, _) in pairs]
    low, middle, high = statistics.quantiles([*each] * (1 + (len(each) < 2)), n=4)
    return low, middle, high


if __name__ == "__main__":
    main()
