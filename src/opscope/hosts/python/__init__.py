"""The host of plain Python: functions, generators, coroutines, blocks marked with `custom_op`."""

from opscope.hosts.python.host import PythonHost
from opscope.hosts.python.marked import custom_op

__all__ = ["PythonHost", "custom_op"]
