"""What the engine raises: one tree of its own, so that it depends on nothing else."""

from __future__ import annotations


class EngineError(Exception):
    """Anything the engine itself refuses; errors of user code keep their own types."""


class GraphError(EngineError):
    """The dependency graph contradicts itself: a fault of the engine, not of its user."""


class ShapeError(EngineError):
    """Shapes or arguments of an operator do not fit; raised at the call, nothing is pushed."""


class RegistrationError(EngineError):
    """A custom operator cannot be registered, or is not registered."""
