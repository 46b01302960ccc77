"""The host of PyTorch: hooks around the functions of custom operators, and torch's own profiler for
what they launched."""

from opscope.hosts.torch.host import TorchHost

__all__ = ["TorchHost"]
