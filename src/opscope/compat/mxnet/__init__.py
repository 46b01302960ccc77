"""The built-in engine and opscope's recording behind the names of Apache MXNet.

    import opscope.compat.mxnet as mx

stands in for `import mxnet as mx` in imperative programs: nd, custom operators, autograd, the
profiler. What is not here raises an AttributeError in words. MXNET_ENGINE_TYPE,
MXNET_CPU_WORKER_NTHREADS and MXNET_PROFILER_AUTOSTART are read when this is imported.
"""

from __future__ import annotations

from opscope._version import __version__ as _ours
from opscope.compat.mxnet import (
    autograd,
    base,
    context,
    engine,
    environment,
    nd,
    operator,
    profiler,
    random,
    test_utils,
)
from opscope.compat.mxnet.absent import importable, lacks
from opscope.compat.mxnet.base import MXNetError
from opscope.compat.mxnet.context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus

ndarray = nd

#: The MXNet whose behaviour this follows, and what really runs.
__version__ = f"1.9.1+opscope.{_ours}"

__all__ = [
    "Context",
    "MXNetError",
    "__version__",
    "autograd",
    "base",
    "context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "engine",
    "gpu",
    "nd",
    "ndarray",
    "num_gpus",
    "operator",
    "profiler",
    "random",
    "test_utils",
]

__getattr__ = lacks("mx", lambda: __all__)

importable(__name__)
environment.obey()
