"""Running the body of a custom operator, and telling of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import tape
from .array import Array
from .calls import Call, enter, here, leave
from .engine import Engine
from .graph import CUSTOM, Task, Var, tidy
from .hooks import hooks
from .storage import Storage

Groups = list[list[Array]]
Body = Callable[[Groups], None]


def push_call(
    engine: Engine,
    call: Call,
    body: Body,
    groups: Groups,
    reads: list[Array],
    writes: list[Array],
    state: Var,
) -> None:
    """Push the call as one task over all its arrays. Does not block (kind naive: runs here)."""
    holds = tidy(
        [array.storage.var for array in reads], [*(array.storage.var for array in writes), state]
    )
    backward = call.direction == "backward"
    name = f"_backward_{call.op.name}" if backward else call.op.name
    task = Task(None, name, *holds, kind=CUSTOM, pushed_by=here.call)
    training = tape.state.training
    task.fn = lambda: _run(engine, call, body, groups, training, task)
    call.task = task
    engine.push_task(task)


def _run(
    engine: Engine, call: Call, body: Body, groups: Groups, training: bool, task: Task
) -> None:
    enter(call)
    inner: dict[Var, Array] = {}
    try:
        told = hooks.call_began
        if told is not None:
            told(call)
        _body(call, body, _inner(groups, inner), training)
    except BaseException as error:
        call.error = error
        task.error = engine.fail(task, error)
    finally:
        # Told before the task can end: who has waited for a call has seen its end.
        told = hooks.call_ended
        if told is not None:
            told(call)
        leave(call)
    engine.conclude(task, tuple(array.storage.var for array in inner.values()))


def call_here(call: Call, body: Callable[[], Any]) -> Any:
    """Run the body at once on this thread, and tell of it; returns and raises what it does."""
    enter(call)
    outer = here.innermost
    try:
        told = hooks.call_began
        if told is not None:
            told(call)
        here.innermost = call
        try:
            told = hooks.body_began
            if told is not None:
                told(call)
            return body()
        finally:
            told = hooks.body_ended
            if told is not None:
                told(call)
            here.innermost = outer
    except BaseException as error:
        call.error = error
        raise
    finally:
        told = hooks.call_ended
        if told is not None:
            told(call)
        leave(call)


def _inner(groups: Groups, made: dict[Var, Array]) -> Groups:
    """The same elements under new variables, which the task does not hold: one per variable."""
    parts: dict[Storage, Array] = {}  # arrays that share a variable do so inside as well

    def one(array: Array) -> Array:
        storage = array.storage
        if storage not in parts:
            first = made.get(storage.var)
            shared = None if first is None else first.storage.share(storage.cell)
            parts[storage] = Array(shared or storage.inner())
            made.setdefault(storage.var, parts[storage])
        return parts[storage]

    return [[one(array) for array in group] for group in groups]


def _body(call: Call, body: Body, groups: Groups, training: bool) -> None:
    outer = here.call, here.innermost, here.segment
    taped = tape.state.recording, tape.state.training
    here.call, here.innermost, here.segment = call, call, None
    tape.state.recording, tape.state.training = False, training
    try:
        told = hooks.body_began
        if told is not None:
            told(call)
        body(groups)
    finally:
        told = hooks.body_ended
        if told is not None:
            told(call)
        here.call, here.innermost, here.segment = outer
        tape.state.recording, tape.state.training = taped
