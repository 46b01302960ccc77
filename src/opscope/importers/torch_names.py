"""What the names of PyTorch's events tell; shared by the host and by what reads its files."""

from __future__ import annotations

#: Namespaces of torch's own operators.
BUILT_IN = frozenset(
    ("_c10d_functional", "_c10d_functional_autograd", "_dtensor", "_native", "_quantized", "_test",
     "aten", "autograd", "c10d", "debug_mode_ops", "debugprims", "export", "fsdp",
     "higher_order", "inductor", "inductor_prims", "mkl", "mkldnn", "mkldnn_prepacked", "nccl",
     "onednn", "prim", "prims", "profiler", "quantization", "quantized", "rngprims", "sparse",
     "static_runtime", "symm_mem", "torch", "torch_attn", "xpu")
)  # fmt: skip

#: How events of the backward engine, of a custom_op's way to its gradient, and of steps begin.
ENGINE = "autograd::engine::evaluate_function"
WRAPPER = "GeneratedBackwardFor_"
STEP = "ProfilerStep#"

#: An operator on its way through a TorchDispatchMode, which usually calls it again.
MODE = "PythonDispatchMode"

#: What a stretch is called in which a checkpoint computes again, as our own hook sees it.
RECOMPUTE = "recompute"
#: Nodes and annotations in which forward operators run again.
AGAIN = ("CheckpointFunctionBackward", RECOMPUTE)

#: Runtime calls that wait for the device.
WAITS = frozenset(
    f"{api}{name}"
    for api in ("cuda", "hip", "cu")
    for name in ("DeviceSynchronize", "StreamSynchronize", "EventSynchronize", "CtxSynchronize")
)
