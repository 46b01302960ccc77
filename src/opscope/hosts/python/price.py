"""What recording costs in this process, calls of marked functions included."""

from __future__ import annotations

from opscope.errors import OpscopeError
from opscope.hosts.python.operators import HOST, Marked, end
from opscope.model import Op
from opscope.record.buffer import log
from opscope.record.calibration import Costs, costs


def price() -> Costs:
    """Measured in a few ms, once in a process; nothing where it cannot be. Any thread.

    Raises only what making a recorder raises.
    """
    try:
        return costs(Marked(Op(HOST, "function", "calibration")).begin, end)
    except OpscopeError:
        raise
    except Exception:
        log.exception("opscope: what recording costs could not be measured")
        return {}
