"""What the names of a JAX trace's planes, lines and events mean, and its custom operators."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from opscope.attribution.late import Role
from opscope.importers.building import Builder
from opscope.importers.torch_names import WAITS
from opscope.importers.xplane.hlo import CustomCall, by_name, is_built_in, is_python
from opscope.model import Op

#: Planes whose lines are threads of the program.
HOSTS = frozenset(
    f"/host:{name}"
    for name in ("CPU", "CUPTI", "NVTX-CUPTI", "ROCTRACER", "TPU-runtime", "python-tracer")
)
_DEVICE = re.compile(r"^/device:(?!CUSTOM:)")
#: Lines of a device that tell again what other lines hold, coarser or by another name.
_DERIVED = re.compile(
    r"^(Sparse Core )?(Steps|Modules)$|^XLA Modules$|^Async XLA Ops$|^XLA TraceMe$|^_counters_$"
    r"|^(Framework|TensorFlow) (Ops|Name Scope)$|^Source( code)?$|^Launch Stats$|Sync"
)
#: Lines of a device on which an operation lies around those it is made of.
INSTRUCTIONS = ("XLA Ops", "Sparse Core Ops", "Host Offload Ops")
MODULES = ("XLA Modules", "Sparse Core Modules")

#: How JAX puts the arguments of a callback on a device.
GLUE = "shard_args"

#: How the frames begin that JAX's own tracer of Python wrote.
_FRAME = "$"
_JITTED = "PjitFunction("
_AWAIT = re.compile(r"Buffer::Await$")
_WAITING = re.compile(r"::Await$|\(wait for completion\)$|^Wait for |::BlockUntilReady")
#: What the runtime does around what it executes, in whatever release.
_CHORE = re.compile(
    r"^(PythonRefManager|ThreadpoolListener|ThunkExecutor|\w*(PjRt|Pjrt|Tfrt)\w*)::|^end: "
    r"|^(ParseArguments|Handle inputs?|Handle input event recording|AllocateOutputBuffers\w*"
    r"|BatchedCopyToDevice.*|ConsumeWithHandlers.*)$"
)
#: What JAX and XLA do under names that an annotation of a user's could have as well.
_OWN = re.compile(
    r"::|^PjitFunction\(|^(shard_args|batched_.*|DevicePut\w*|copy_to_host_async|ExecuteReplicated.*"
    r"|H2D Dispatch|D2H Dispatch|XLA\w*|Thunk:.*|backend_compile\w*|lower_\w+|trace_to_jaxpr\w*"
    r"|pickle_util\..*|np\.asarray\(jax\.Array\)|_\w*jaxpr\w*|PjRt.*|pxla\..*|Transfer\w*"
    r"|block_until_ready|infer_params|\w+\.__call__)$"
)
#: Of those, where Python code of the user's may run inside.
_OPEN = re.compile(r"^PjitFunction\(|^trace_to_jaxpr|^_\w*jaxpr|^infer_params$")


def is_device(plane: str) -> bool:
    """Whether the lines of that plane are streams of a device."""
    return _DEVICE.match(plane) is not None


def work_lines(names: list[str]) -> list[bool]:
    """Which lines of a device hold its work, each piece on one of them only.

    Streams, where there are any; the instructions of XLA only where there are none.
    """
    derived = [_DERIVED.search(name) is not None for name in names]
    streams = any(
        not known and name not in INSTRUCTIONS for name, known in zip(names, derived, strict=True)
    )
    return [
        not known and not (streams and name in INSTRUCTIONS)
        for name, known in zip(names, derived, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an event on a thread is by its name alone. `maybe` an annotation of the user's, which
    only what is around it decides; Python code of the user's may run inside what is `open`."""

    role: int
    maybe: bool = False
    open: bool = False
    chore: bool = False
    jitted: bool = False
    awaits: bool = False


def meaning(name: str) -> Meaning:
    """The meaning of an event of that name."""
    if name.startswith(_FRAME):
        return Meaning(int(Role.RANGE), open=True)
    if name in WAITS or _WAITING.search(name):
        return Meaning(int(Role.WAIT), awaits=_AWAIT.search(name) is not None)
    if _CHORE.search(name):
        return Meaning(int(Role.OP), chore=True)
    if _OWN.search(name):
        return Meaning(
            int(Role.OP),
            open=_OPEN.search(name) is not None,
            jitted=name.startswith(_JITTED),
        )
    return Meaning(int(Role.OP), maybe=True)


@dataclass
class Operators:
    """The custom operators of a file; entries of names, made when an event asks for them.

    `backward` are those that belong to a gradient, `python` those in which Python code runs,
    `callbacks` those whose function JAX calls from a program.
    """

    builder: Builder
    calls: list[CustomCall]
    programs: frozenset[int]
    entries: set[int] = field(default_factory=set)
    backward: set[int] = field(default_factory=set)
    python: set[int] = field(default_factory=set)
    callbacks: set[int] = field(default_factory=set)
    _known: dict[tuple[int, str], tuple[CustomCall, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A function that was compiled twice is one operator; what is called the same in two
        # places, or twice in one, is two.
        registered: dict[str, dict[tuple[str, int, int], int]] = {}
        placed: dict[tuple[int, str, str, int], int] = {}
        for call in self.calls:
            if call.built_in:
                continue
            qualified = call.op(1).qualified
            place = (call.program, qualified, call.file, call.line)
            nth = placed[place] = placed.get(place, 0) + 1
            numbers = registered.setdefault(qualified, {})
            number = numbers.setdefault((call.file, call.line, nth), len(numbers) + 1)
            self._known.setdefault((call.program, call.instruction), (call, number))

    def instructions(self) -> frozenset[str]:
        """What the instructions are called that call custom operators."""
        return frozenset(name for _, name in self._known)

    def of_instruction(self, program: int, name: str, module: str = "", target: str = "") -> int:
        """The operator that an instruction calls, -1: none that anybody wrote.

        `target` is what it calls, where no program tells.
        """
        known = self._known.get((program, name))
        if known is not None:
            call, number = known
            return self._made(call.op(number), call.python, call.backward)
        if program in self.programs:
            return -1
        if target:
            if is_built_in(target):
                return -1
            return self._made(CustomCall(program, name, target).op(1), is_python(target), False)
        return self.of_name(name, module)

    @staticmethod
    def looks_custom(name: str) -> bool:
        """Whether a name alone gives a custom operator away."""
        return by_name(name) is not None

    def of_name(self, name: str, module: str = "") -> int:
        """The operator of an event that only its name gives away, -1: none."""
        told = by_name(name)
        if told is None:
            return -1
        short, python = told
        qualified = f"{module}/{name}" if module else short
        return self._made(Op("jax", "ffi", qualified, qualified, native=not python), python, False)

    def chosen(self, name: str) -> int:
        """The operator that the user says a name is, -1: none."""
        if not self.builder.options.chosen(name):
            return -1
        return self._made(Op("jax", "chosen", name, name), True, False)

    def _made(self, op: Op, python: bool, backward: bool) -> int:
        entry = self.builder.op(op)
        self.entries.add(entry)
        if python:
            self.python.add(entry)
        if python and op.kind == "ffi":
            self.callbacks.add(entry)
        if backward:
            self.backward.add(entry)
        return entry
