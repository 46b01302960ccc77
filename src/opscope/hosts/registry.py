"""Which hosts there are, and attaching them: at once, or when their framework is imported."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import entry_points

from opscope.errors import HostError
from opscope.hosts.engine import EngineHost
from opscope.hosts.importing import on_import
from opscope.hosts.python import PythonHost
from opscope.hosts.seam import Host
from opscope.hosts.torch import TorchHost
from opscope.model import Sight
from opscope.record import Recorder

_OURS: tuple[Callable[[], Host], ...] = (EngineHost, PythonHost, TorchHost)
_log = logging.getLogger("opscope")


def available() -> list[Host]:
    """Our own hosts, then those of entry points, unless they fail to load or take a known name."""
    hosts = [make() for make in _OURS]
    for entry in entry_points(group="opscope.hosts"):
        try:
            host = entry.load()()
            if not isinstance(host, Host):
                raise HostError(f"{entry.value} is not a host")
            if host.name in {known.name for known in hosts}:
                raise HostError(f"there is a host called {host.name!r} already")
            hosts.append(host)
        except Exception as error:
            _log.warning("host %s cannot be loaded: %s", entry.name, error)
    return hosts


def chosen(names: Sequence[str] | str = "auto") -> list[Host]:
    """The hosts of those names; "auto" is all of them. Raises HostError for an unknown name."""
    hosts = available()
    wanted = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    if wanted == ["auto"]:
        return hosts
    by_name = {host.name: host for host in hosts}
    for name in wanted:
        if name not in by_name:
            raise HostError(f"no host is called {name!r}; there are: auto, {', '.join(by_name)}")
    return [by_name[name] for name in wanted]


def probe_all() -> list[Sight]:
    """What every host can see here and now."""
    return [_sight(host) for host in available()]


@contextmanager
def attached(hosts: Sequence[Host], recorder: Recorder) -> Iterator[None]:
    """Inside the block every host is hooked in, later ones as soon as their framework is imported.

    A host that cannot be attached, or fails to let go, is named in the recording; the program goes
    on.
    """
    if PythonHost.name not in {host.name for host in hosts}:
        recorder.off.add(PythonHost.name)  # it hooks into nothing: marked functions look here
    group = _Group(recorder)
    waiting: dict[str, list[Host]] = {}
    try:
        for host in hosts:
            if host.module is None or sys.modules.get(host.module) is not None:
                group.attach(host)
            else:
                waiting.setdefault(host.module, []).append(host)
        with on_import(waiting, group.attach):
            yield
    finally:
        group.detach()


class _Group:
    """The hosts that are attached now. Any thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._attached: list[tuple[Host, ExitStack]] = []
        self._over = False

    def attach(self, host: Host) -> None:
        """Hook the host in. Raises nothing but what is no Exception."""
        hooks = ExitStack()
        try:
            hooks.enter_context(host.attach(self._recorder))
        except Exception as error:
            self._recorder.fault(f"host {host.name}", error)
            return
        self._recorder.sight.append(_sight(host))
        self._attached.append((host, hooks))
        if self._over:
            self._release()  # the recording ended meanwhile, on another thread

    def detach(self) -> None:
        """Let go of all hosts, the last one first."""
        self._over = True
        self._release()

    def _release(self) -> None:
        while self._attached:
            try:
                host, hooks = self._attached.pop()
            except IndexError:
                return  # another thread has let go of the last one
            try:
                hooks.close()
            except Exception as error:
                self._recorder.fault(f"host {host.name}", error)


def _sight(host: Host) -> Sight:
    try:
        return host.probe()
    except Exception as error:
        return Sight(host.name, misses={"everything": f"probing it failed: {error!r}"})
