"""Which custom operators of torch exist: one `Watched` for each definition."""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from opscope.importers.torch_names import BUILT_IN
from opscope.model import Op, Phase
from opscope.record import Recorder

HOST = "torch"

#: What `GeneratedBackwardFor...` classes are called by; torch derives the rest from the operator.
GENERATED = "GeneratedBackwardFor_"

#: Marks classes of ours that stand in for a user's Function.
STAND_IN = "_opscope_stand_in"


#: How many functions of torch's are looked through to find the user's.
_NESTED = 16


class Watched:
    """A custom operator whose function is hooked, and the names its events have."""

    __slots__ = ("_at", "backward_event", "forward_event", "op", "outside")

    def __init__(self, op: Op, forward_event: str, backward_event: str, *, outside: bool) -> None:
        self.op = op
        #: Names of torch's own events of its calls; `outside`: the forward one is around the hook.
        self.forward_event = forward_event
        self.backward_event = backward_event
        self.outside = outside
        self._at: tuple[weakref.ref[Recorder] | None, int] = (None, -1)

    def entry(self, recorder: Recorder) -> int:
        """The operator's entry of the names of that recording."""
        seen, entry = self._at
        if seen is None or seen() is not recorder:
            entry = recorder.op(self.op)
            self._at = weakref.ref(recorder), entry
        return entry


class Operators:
    """The operators met in one recording. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._custom: dict[str, tuple[Any, Watched]] = {}
        self._functions: weakref.WeakKeyDictionary[type, Watched | None] = (
            weakref.WeakKeyDictionary()
        )

    def custom_op(self, definition: Any) -> Watched:
        """The operator of a `torch.library.custom_op` or `triton_op`."""
        name: str = definition._qualname
        with self._lock:
            known = self._custom.get(name)
            if known is None or known[0] is not definition:
                self._custom[name] = known = (definition, _custom_op(definition))
        return known[1]

    def function(self, cls: type) -> Watched | None:
        """The operator that an autograd.Function is; None for those of torch itself."""
        try:
            return self._functions[cls]
        except KeyError:
            pass
        made = self._new_function(cls)
        with self._lock:
            return self._functions.setdefault(cls, made)

    def all(self) -> list[Watched]:
        """Every operator met so far."""
        with self._lock:
            functions = [found for found in self._functions.values() if found is not None]
            custom = [watched for _, watched in self._custom.values()]
            return list(dict.fromkeys((*custom, *functions)))

    def code_owners(self) -> Iterator[tuple[Any, Watched, Phase]]:
        """The Python functions that run in calls of the operators, with operator and phase."""
        with self._lock:
            custom, functions = list(self._custom.values()), list(self._functions.items())
        for definition, watched in custom:
            for function in (definition._init_fn, *definition._backend_fns.values()):
                yield _users(function), watched, Phase.FORWARD
            yield definition._backward_fn, watched, Phase.BACKWARD
        for cls, found in functions:
            if found is not None and not found.outside:
                for name, phase in (("forward", Phase.FORWARD), ("backward", Phase.BACKWARD)):
                    function = vars(cls).get(name)
                    yield getattr(function, "__func__", function), found, phase

    def _new_function(self, cls: type) -> Watched | None:
        if cls.__name__.startswith(GENERATED) and is_torchs(cls):
            return self._by_generated(cls.__name__)
        if is_torchs(cls):
            # Mapped over a dimension it is a class of torch's, which runs the user's functions.
            return self.behind(cls) if cls.__name__.startswith("Vmapped") else None
        file, line = place_of(cls.__dict__.get("forward", cls))
        qualified = f"{cls.__module__}.{cls.__qualname__}"
        op = Op(
            HOST,
            "autograd.Function",
            cls.__name__,
            qualified,
            "",
            _registration(cls, qualified),
            file,
            line,
        )
        # The class may have been renamed since its nodes got their name.
        node = getattr(cls, "_backward_cls", None)
        backward = getattr(node, "__name__", f"{cls.__name__}Backward")
        return Watched(op, cls.__name__, backward, outside=False)

    def behind(self, cls: type) -> Watched | None:
        """The operator of the user's Function for which functorch made a class of its own."""
        if not (getattr(cls, "__module__", "") or "").startswith("torch._functorch"):
            return None
        for name in ("backward", "forward"):
            function = getattr(vars(cls).get(name), "__func__", None)
            code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", ())
            for free, cell in zip(getattr(code, "co_freevars", ()), cells or (), strict=True):
                if free == "autograd_function":
                    return self.function(cell.cell_contents)
        return None

    def _by_generated(self, name: str) -> Watched | None:
        with self._lock:
            for _, watched in self._custom.values():
                if watched.backward_event == f"{name}Backward":
                    return watched
        return None


def existing() -> Operators:
    """The custom operators and Functions that exist now."""
    operators = Operators()
    for definition in definitions():
        operators.custom_op(definition)
    pending = [sys.modules["torch.autograd.function"].Function]
    while pending:
        for cls in pending.pop().__subclasses__():
            if STAND_IN not in vars(cls):
                operators.function(cls)
                pending.append(cls)
    return operators


def definitions() -> list[Any]:
    """What was defined with `torch.library.custom_op` and `triton_op`, torch's own left out."""
    library = sys.modules.get("torch._library.custom_ops")
    found = list(getattr(library, "OPDEFS", {}).values())
    return [definition for definition in found if not is_torchs_own(definition)]


def is_torchs_own(definition: Any) -> bool:
    """Whether an operator is in one of torch's namespaces."""
    return definition._namespace in BUILT_IN


def is_torchs(thing: Any) -> bool:
    """Whether a class or function is part of torch itself."""
    module = getattr(thing, "__module__", "") or ""
    return module == "torch" or module.startswith("torch.")


def _custom_op(definition: Any) -> Watched:
    name: str = definition._qualname
    space, _, bare = name.partition("::")
    file, line = place_of(_users(definition._init_fn))
    op = Op(HOST, _kind(name), name, name, "", 1, file, line)
    overload = getattr(definition._opoverload, "_overloadname", "default")
    backward = f"{GENERATED}{space}_{bare}_{overload}Backward"
    return Watched(op, name, backward, outside=True)


def _users(function: Any) -> Any:
    """The user's function inside those that torch made around it."""
    inner = [function]
    for found in inner:  # grows on the way
        if not is_torchs(found):
            return found
        for cell in getattr(found, "__closure__", None) or ():
            if inspect.isfunction(cell.cell_contents) and len(inner) < _NESTED:
                inner.append(cell.cell_contents)
    return function


def _kind(name: str) -> str:
    triton = sys.modules.get("torch._library.triton")
    return "triton_op" if name in getattr(triton, "triton_ops_to_kernels", ()) else "custom_op"


def place_of(function: Any) -> tuple[str, int]:
    """File and line of a function's code, or of a class; ("", 0) where they are not known."""
    if isinstance(function, (staticmethod, classmethod)):
        function = function.__func__
    try:
        function = inspect.unwrap(function)
    except ValueError:
        return "", 0
    code = getattr(function, "__code__", None)
    if code is not None:
        return code.co_filename, code.co_firstlineno
    try:
        return inspect.getsourcefile(function) or "", inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return "", 0


_numbers: dict[str, list[weakref.ref[type]]] = {}
_numbering = threading.Lock()


def _registration(cls: type, qualified: str) -> int:
    """1 for the first class of that qualified name, 2 for another, for the life of the process."""
    with _numbering:
        known = _numbers.setdefault(qualified, [])
        for number, reference in enumerate(known, 1):
            if reference() is cls:
                return number
        known.append(weakref.ref(cls))
        return len(known)
