"""What names and categories of PyTorch's events mean in a file."""

from __future__ import annotations

import re

import numpy as np

from opscope.attribution.late import Customs, Events, Role
from opscope.importers.building import Builder
from opscope.importers.torch_names import AGAIN, BUILT_IN, ENGINE, MODE, STEP, WAITS, WRAPPER
from opscope.model import Op

#: Categories as they have been called since 2021; what is not here is an annotation.
_ROLES = {
    "cpu_op": Role.OP,
    "Operator": Role.OP,
    "cuda_runtime": Role.API,
    "cuda_driver": Role.API,
    "hip_runtime": Role.API,
    "hip_driver": Role.API,
    "xpu_runtime": Role.API,
    "mtia_runtime": Role.API,
    "privateuse1_runtime": Role.API,
    "privateuse1_driver": Role.API,
    "Runtime": Role.API,
    "kernel": Role.DEVICE,
    "Kernel": Role.DEVICE,
    "gpu_memcpy": Role.DEVICE,
    "Memcpy": Role.DEVICE,
    "gpu_memset": Role.DEVICE,
    "Memset": Role.DEVICE,
    "mtia_ccp_events": Role.DEVICE,
    "mtia_insight": Role.DEVICE,
    "concurrent_kernel": Role.DEVICE,
    "collective_comm": Role.DEVICE,
}
#: An annotation as its device shows it: a second picture, and no step of its own.
DEVICE_RANGE = 100
#: Python frames are told apart by nobody's table, and are most of a file that has them.
_LEFT_OUT = ("python_function", "Trace", "overhead")

_OPERATOR = re.compile(r"^([A-Za-z_]\w*)::([A-Za-z_]\w*)$")
_NODE = re.compile(r"Backward\d*$|^torch::autograd::")
_OWN_FUNCTION = re.compile(r"^[A-Za-z_]\w*$")
#: torch's own Functions, whose nodes look like a user's.
_TORCHS = frozenset(
    ("ApplyTemplate", "BackwardHookFunction", "CheckpointFunction", "CompiledFunction", "NoopSave")
)


def roles_of(category: str) -> int:
    """The role of an event of that category; -1 for those that are left out."""
    if category in _LEFT_OUT:
        return -1
    if category == "gpu_user_annotation":
        return DEVICE_RANGE
    return int(_ROLES.get(category, Role.RANGE))


def finer_roles(name: str) -> tuple[int, int, int]:
    """What an event of that name is if it is an operator, an annotation, a runtime call."""
    op = Role.OP
    if name.startswith(ENGINE):
        op = Role.ENGINE
    elif _NODE.search(name):
        op = Role.NODE
    elif name.startswith(WRAPPER) or name == MODE:
        op = Role.WRAPPER
    return (
        int(op),
        int(Role.STEP if name.startswith(STEP) else Role.RANGE),
        int(Role.WAIT if name in WAITS else Role.API),
    )


def told_by_names(builder: Builder, events: Events) -> Customs:
    """The custom operators that names tell: `ns::op` outside torch's namespaces, classes that have
    a node `NameBackward`, and what the user says."""
    forward: dict[int, int] = {}
    backward: dict[int, int] = {}
    of_role = {
        role: {builder.names[entry] for entry in np.unique(events.name[events.role == role])}
        for role in (Role.OP, Role.NODE, Role.WRAPPER, Role.RANGE)
    }
    for name in sorted(of_role[Role.OP] | of_role[Role.RANGE]):
        if name in of_role[Role.OP] and _is_custom(name):
            op = builder.op(Op("torch", "torch.library", name, name))
        elif builder.options.chosen(name):
            op = builder.op(Op("torch", "chosen", name, name))
        else:
            continue
        forward[builder.name(name)] = op
        space, _, bare = name.partition("::")
        start = f"{WRAPPER}{space}_{bare}_"
        for node in of_role[Role.NODE]:
            if node.startswith(start) and node.endswith("Backward"):
                backward[builder.name(node)] = op
    for node in sorted(of_role[Role.NODE]):
        name = node.removesuffix("Backward")
        if name != node and _OWN_FUNCTION.match(name) and name not in _TORCHS:
            if name.startswith(WRAPPER):
                continue
            op = builder.op(Op("torch", "autograd.Function", name, name))
            backward[builder.name(node)] = op
            if name in of_role[Role.OP]:
                forward[builder.name(name)] = op
    again = frozenset(builder.name(text) for text in AGAIN if text in of_role[Role.NODE])
    return Customs(forward, backward, again=again)


def _is_custom(name: str) -> bool:
    found = _OPERATOR.match(name)
    return found is not None and found.group(1) not in BUILT_IN
