"""The custom calls in the programs (`HloProto`) that a JAX trace carries along.

The numbers are those of xla/service/hlo.proto and xla/xla_data.proto.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opscope.importers.xplane.protobuf import BYTES, VARINT, Wire
from opscope.importers.xplane.xspace import Plane, walk
from opscope.model import Op

_CUSTOM = b"custom-call"
#: Targets behind which there is a function of Python's.
_PYTHON = re.compile(r"^xla_(ffi_|buffer_)?(partitioned_)?python_\w*callback$")
#: Targets of which nothing but the operator's own name says what they are.
_PALLAS = re.compile(
    r"^(tpu_custom_call|triton_kernel_call|mosaic_gpu\w*|__gpu\$xla\.gpu\.triton)$"
)
#: Targets that XLA and JAX make themselves.
_BUILT_IN = re.compile(
    r"^(__|cu(blas|dnn|fft|solver|sparse|rand|_|da_)|hip(blas|fft|solver|sparse|rand|_)|lapack_|blas_"
    r"|ducc_fft|annotate_device_placement|xla\.|Sharding$|SPMD|TopK$|ApproxTopK$|PartialReduce$"
    r"|PadToStatic$|SliceToDynamic$|MoveTo(Host|Device)$|AllocateBuffer$|CreateBuffer$|Pin$|Unpin$"
    r"|Qr$|Eigh$|LuDecomposition|Cholesky$|Householder|ProductOfElementaryHouseholder|X64|"
    r"InspectSharding$|Layout|LayoutConstraint$|NopReturnToken$|AssumeGatherIndicesInBound$"
    r"|shape_assertion$|Global|LocalTo|GlobalTo|ResizeNearest|ResizeBilinear)"
)
#: What those operators are called where the file holds no program that says more.
_BY_NAME = re.compile(
    r"^(xla_\w*python_\w*callback|pure_callback|io_callback|debug_callback|debug_print"
    r"|ffi_call|custom-call)(\.\d+)*$"
)
_TARGET = re.compile(r'custom_call_target="([^"]*)"')


@dataclass(frozen=True, slots=True)
class CustomCall:
    """An instruction that calls what somebody wrote. `op_name` is JAX's path to it."""

    program: int
    instruction: str
    target: str
    op_name: str = ""
    file: str = ""
    line: int = 0

    @property
    def backward(self) -> bool:
        """JAX says so of what belongs to a gradient."""
        return "transpose(" in self.op_name

    @property
    def python(self) -> bool:
        """Whether it calls a function of Python's."""
        return is_python(self.target)

    @property
    def built_in(self) -> bool:
        """Whether XLA or JAX made it, not a user."""
        return is_built_in(self.target, self.op_name)

    def op(self, number: int) -> Op:
        """The operator; `number` tells those apart that are called the same.

        The file does not hold the name of a callback's function: JAX's path to it has to do.
        """
        by_path = self.python or bool(_PALLAS.match(self.target))
        name = (self.op_name if by_path else self.target) or self.target or self.instruction
        qualified = self.op_name or self.instruction
        if self.target and not by_path:
            qualified = f"{qualified} {self.target}"
        return Op(
            "jax",
            "ffi",
            name,
            qualified,
            registration=number,
            file=self.file,
            line=self.line,
            native=not self.python,
        )


def is_python(target: str) -> bool:
    """Whether there is a function of Python's behind that target."""
    return _PYTHON.match(target) is not None


def is_built_in(target: str, op_name: str = "") -> bool:
    """Whether XLA or JAX make that target themselves."""
    if _PALLAS.match(target):
        return target.startswith("__") and "pallas_call" not in op_name
    return _BUILT_IN.match(target) is not None


def by_name(name: str) -> tuple[str, bool] | None:
    """(what it is called, whether it is Python's) of an event that only its name gives away."""
    found = _BY_NAME.match(name)
    if found is None:
        return None
    return found.group(1), found.group(1) not in ("ffi_call", "custom-call")


def target_in(text: str) -> str:
    """The target in an instruction that is written out; "" where it has none."""
    found = _TARGET.search(text)
    return found.group(1) if found else ""


def has_programs(planes: list[Plane]) -> frozenset[int]:
    """The numbers of the programs that the file holds."""
    return frozenset(program for program, *_ in _programs(planes))


def custom_calls(planes: list[Plane]) -> list[CustomCall]:
    """The custom calls of all programs, by program and as they stand in it."""
    found = {
        program: list(_of_program(wire, program, start, stop))
        for program, wire, start, stop in _programs(planes)
    }
    return [call for program in sorted(found) for call in found[program]]


def _programs(planes: list[Plane]) -> Iterator[tuple[int, Wire, int, int]]:
    for plane in planes:
        for number, kind in plane.metadata.items():
            for stat in ("Hlo Proto", "hlo_proto"):
                place = kind.stats.get(stat)
                if isinstance(place, tuple):
                    program = kind.stats.get("program_id", number)
                    program = program if isinstance(program, int) else number
                    yield program, plane.wire, *place


def _of_program(wire: Wire, program: int, start: int, stop: int) -> list[CustomCall]:
    if wire.data.find(_CUSTOM, start, stop) < 0:
        return []
    calls: list[CustomCall] = []
    for begin, end in walk(wire, start, stop, 1):
        frames: list[tuple[str, int]] = []
        for inner, finish in walk(wire, begin, end, 17):
            frames = _frames(wire, inner, finish)
        for inner, finish in walk(wire, begin, end, 3):
            for first, last in walk(wire, inner, finish, 2):
                call = _of_instruction(wire, program, first, last, frames)
                if call is not None:
                    calls.append(call)
    return calls


def _of_instruction(
    wire: Wire, program: int, start: int, stop: int, frames: list[tuple[str, int]]
) -> CustomCall | None:
    name = target = op_name = file = ""
    line = 0
    for number, how, value, end in wire.fields(start, stop):
        if how != BYTES:
            continue
        if number == 1:
            name = wire.text(value, end)
        elif number == 2 and wire.data[value:end] != _CUSTOM:
            return None
        elif number == 28:
            target = wire.text(value, end)
        elif number == 7:
            for inner, inner_how, begin, finish in wire.fields(value, end):
                if inner_how == BYTES and inner == 2:
                    op_name = wire.text(begin, finish)
                elif inner_how == BYTES and inner == 3:
                    file = wire.text(begin, finish)
                elif inner_how == VARINT and inner == 4:
                    line = begin
                elif inner_how == VARINT and inner == 15 and 0 < begin <= len(frames):
                    file, line = frames[begin - 1]
    return CustomCall(program, name, target, op_name, file, line) if target else None


def _frames(wire: Wire, start: int, stop: int) -> list[tuple[str, int]]:
    """(file, line) of each frame of a program's table of Python frames."""
    files: list[str] = []
    places: list[tuple[str, int]] = []
    frames: list[tuple[str, int]] = []
    for number, how, value, end in wire.fields(start, stop):
        if how != BYTES:
            continue
        if number == 1:
            files.append(wire.text(value, end))
        elif number in (3, 4):
            told = {one: got for one, how, got, _ in wire.fields(value, end) if how == VARINT}
            first = told.get(1, 0)
            if number == 3:
                file = files[first - 1] if 0 < first <= len(files) else ""
                places.append((file, told.get(3, 0)))
            else:
                frames.append(places[first - 1] if 0 < first <= len(places) else ("", 0))
    return frames
