"""What may strangers see of a session? The same one, without names of people, machines, folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count, filterfalse, islice
from typing import Any

from opscope.model import Op, Process, Session, Sight

_SEPARATOR = r"[\\/]+"
#: A folder of an absolute path may have spaces: words without a dot, so no file, up to the next /.
_FOLDER = r"""(?:[^\s.()=/\\"'`<>|:;,*?]+[ ])*[^\s/\\"'`<>|:;,*?]+"""
_NEXT = r"""[^\s/\\"'`<>|:;,*?]+"""
_FIRST = r"[\w.~+-](?:[\w.~+@-]*[\w.~+-])?"
_BASE = r"""[^\s/\\"'`<>|:;,*?=()\[\]{}]*"""

#: What may be a path inside a text: absolute, with a drive, or relative.
_TOKEN = (
    rf"(?P<lead>(?:(?<![^\W_])[A-Za-z]:)?{_SEPARATOR})(?:{_FOLDER}{_SEPARATOR})*{_BASE}"
    rf"|(?<![\w.~+@/\\-]){_FIRST}{_SEPARATOR}(?:{_NEXT}{_SEPARATOR})*{_BASE}"
)
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,11}\.?$")
_FRAME = re.compile(r"\(\d+\): ")
_OPTION = re.compile(r"(?:-[\w-]*=)?")
_CODE = re.compile(r"""[\n"'`();]""")

#: The folder of a user. Only behind a drive may it have spaces.
_HOME = re.compile(
    r"[A-Za-z]:[\\/]+(?i:users)[\\/]+(?P<drive>[^\\/\n\"<>|:*?]+(?=[\\/])|[\w.@+-]+)"
    r"|(?:/home|/Users|\\Users)[\\/]+(?P<name>[\w.@+-]+)"
)
_NOBODY = {"root", "shared", "public", "default", "localhost"}
_STAND_IN = re.compile(r"(?:user|host|path)-\d+")

#: What in a sample names a file.
_FILES = frozenset(("file", "body_file", "source"))

#: Of one path so many of the folders around it are known as such.
_DEEPEST = 64


def redacted(session: Session, *, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> Session:
    """The session with stand-ins for users, hosts and folders: `user-1`, `host-1`, `path-1/x.py`.

    Users are the folders below /home, /Users and C:\\Users, hosts the machines of its processes;
    `users` and `hosts` are more of them. Both are replaced wherever they stand as a word, in any
    case. What may be a path counts as one: rather a word too many is hidden than one too few.
    Equal names get equal stand-ins, and times, ids and numbers stay. Comes back as it is when there
    is nothing to hide.
    """
    learned = _Learned()
    _rebuilt(session, learned)
    machines = [process.machine for process in session.processes]
    return _rebuilt(session, _StandIns(learned, [*learned.users, *users], machines, [*hosts]))


class _Learned:
    """A first walk over all texts: changes nothing, and keeps what the second has to know."""

    def __init__(self) -> None:
        self.users: dict[str, None] = {}
        self.folders: dict[str, None] = {}
        self.taken: set[str] = set()
        self._token = re.compile(_TOKEN)

    def text(self, text: str) -> str:
        self.taken.update(_STAND_IN.findall(text))
        for found in _HOME.finditer(text):
            self.users[(found["drive"] or found["name"]).rstrip(".")] = None
        self._folder(_frame(text)[0])
        for token in self._token.finditer(text):
            if _is_path(token):
                self._folder(token[0])
        return text

    def path(self, text: str) -> str:
        self._folder(text)
        return self.text(text)

    def argument(self, text: str) -> str:
        self._folder(_argument(text)[1])
        return self.text(text)

    def machine(self, text: str) -> str:
        return text

    def _folder(self, path: str) -> None:
        folder, _ = _split(path)
        if re.search(r"\w", folder):
            self.folders[folder.rstrip("\\/")] = None

    def known(self) -> dict[str, None]:
        """Folders that stand in others, and the ones around them, longest first."""
        around = (
            folder[: end.start()]
            for folder in self.folders
            for end in islice(re.finditer(_SEPARATOR, folder), _DEEPEST)
        )
        named = (f for f in {*self.folders, *around} if re.search(r"\w", f.lstrip("\\/")))
        return dict.fromkeys(sorted((f for f in named if _split(f)[0]), key=_longest_first))


class _StandIns:
    """The second walk: the texts without the names. Numbers count from 1, by first use."""

    def __init__(
        self,
        learned: _Learned,
        users: Sequence[str],
        machines: Sequence[str],
        hosts: Sequence[str],
    ) -> None:
        self._known = learned.known()
        #: Where relative paths begin: what begins there as well is one too.
        self._tops = {top for top in map(_top, learned.folders) if re.search(r"\w", top)}
        self._users = {name.casefold() for name in users}
        self._free = {
            kind: filterfalse(learned.taken.__contains__, map(f"{kind}-{{}}".format, count(1)))
            for kind in ("user", "host", "path")
        }
        self._paths: dict[str, str] = {}
        self._machines: dict[str, str] = {"": ""}
        self._words: dict[str, str] = {}
        for user in filter(_is_name, users):
            self._word(user)
        for machine in machines:
            self.machine(machine)
        for host in hosts:
            self._host(host, self._words.get(host) or self._new("host"))
        words = "|".join(map(re.escape, sorted(self._words, key=_longest_first))) or "(?!)"
        self._word_in = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE)
        self._name_in = re.compile(
            rf"(?P<odd>{_odd(learned.folders, self._known)})|(?P<token>{_TOKEN})"
            rf"|{self._word_in.pattern}",
            re.IGNORECASE,
        )

    def text(self, text: str) -> str:
        place, rest = _frame(text)
        return (self.path(place) if place else "") + self._name_in.sub(self._found, rest)

    def path(self, text: str) -> str:
        """A text that is a path and nothing else."""
        bare = text.rstrip("\\/")
        if bare in self._known:
            return self._folder(bare) + ("/" if bare != text else "")
        folder, base = _split(text)
        if not re.search(r"\w", folder):
            return self._without_words(text)
        return f"{self._folder(folder)}/{self._without_words(base)}"

    def argument(self, text: str) -> str:
        """A word of a command line: a path where it can be one, also behind `--option=`."""
        option, path = _argument(text)
        return self._without_words(option) + self.path(path) if path else self.text(text)

    def machine(self, text: str) -> str:
        """The whole text, and with it the name of the machine in it."""
        if text not in self._machines:
            stand_in = text if _STAND_IN.fullmatch(text) else self._new("host")
            self._machines[text] = stand_in
            self._host(text.split(maxsplit=1)[0] if text.strip() else "", stand_in)
        return self._machines[text]

    def _host(self, name: str, stand_in: str) -> None:
        for word in filter(_is_name, (name, name.partition(".")[0])):
            self._words.setdefault(word, stand_in)

    def _found(self, found: re.Match[str]) -> str:
        if found["odd"] is not None:
            return self.path(found[0])
        if found["token"] is None:
            return self._word(found[0])
        token = found[0]
        seen = token.rstrip("\\/") in self._known or _top(token) in self._tops
        if seen or _is_path(found):
            return self.path(token)
        return self._without_words(found[0])

    def _without_words(self, text: str) -> str:
        return self._word_in.sub(lambda found: self._word(found[0]), text)

    def _word(self, word: str) -> str:
        if word not in self._words:
            self._words[word] = self._new("user" if word.casefold() in self._users else "host")
        return self._words[word]

    def _folder(self, folder: str) -> str:
        folder = folder.rstrip("\\/")
        if folder not in self._paths:
            known = _STAND_IN.fullmatch(folder)
            self._paths[folder] = folder if known else self._new("path")
        return self._paths[folder]

    def _new(self, kind: str) -> str:
        return next(self._free[kind])


def _is_path(found: re.Match[str]) -> bool:
    """Absolute, in somebody's home, or with an extension; not `GB/s`, not `jit(f)/mul`."""
    token, lead = found[0], found["lead"]
    if not re.search(r"\w", _split(token)[0]):
        return False  # no folder has a name
    behind = found.string[max(found.start() - 1, 0) : found.start()]
    absolute = lead is not None and lead != "\\" and behind not in (")", "]")
    return absolute or token[0] == "~" or bool(_EXTENSION.search(token) or _HOME.search(token))


def _split(path: str) -> tuple[str, str]:
    """Folders, with the last separator, and base name."""
    end = max(path.rfind("/"), path.rfind("\\")) + 1
    return path[:end], path[end:]


def _top(path: str) -> str:
    return re.split(_SEPARATOR, path, maxsplit=1)[0]


def _frame(text: str) -> tuple[str, str]:
    """The path in front, whatever it is made of, and the rest of `x/y.py(12): f`; "" if none."""
    found = _FRAME.search(text)
    place = text[: found.start()] if found else ""
    return (place, text[len(place) :]) if _split(place)[0] and "\n" not in place else ("", text)


def _argument(text: str) -> tuple[str, str]:
    """Option and path of a word of a command line; no path in one that is a program."""
    option = _OPTION.match(text)
    start = option.end() if option else 0
    whole = bool(_split(text[start:])[0]) and not _CODE.search(text)
    return (text[:start], text[start:]) if whole else (text, "")


def _odd(folders: Iterable[str], known: Iterable[str]) -> str:
    """A pattern for folders that nobody finds in a text because of what is in their names."""
    token = re.compile(_TOKEN)
    every = sorted({*folders, *known}, key=_longest_first)
    odd = [folder for folder in every if not token.fullmatch(f"{folder}/x.py")]
    if not odd:
        return "(?!)"
    inside = "|".join(map(re.escape, odd))
    bare = "|".join(re.escape(folder) for folder in odd if _split(folder)[0]) or "(?!)"
    return rf"(?<![^\W_])(?:(?:{inside}){_SEPARATOR}{_BASE}|(?:{bare})(?![^\W_]))"


def _longest_first(text: str) -> tuple[int, str]:
    return -len(text), text


def _is_name(text: str) -> bool:
    """Whether it may be hidden as a word: neither everybody's, nor a number, nor a stand-in."""
    letters = any(letter.isalpha() for letter in text)
    return letters and text.casefold() not in _NOBODY and not _STAND_IN.fullmatch(text)


def _rebuilt(session: Session, names: _Learned | _StandIns) -> Session:
    """The session with every text that goes out passed through `names`."""
    text = names.text
    tables: dict[str, Any] = {
        "processes": tuple(_process(process, names) for process in session.processes),
        "ops": tuple(_op(op, names) for op in session.ops),
        "names": tuple(map(text, session.names)),
        "lanes": tuple(replace(lane, name=text(lane.name)) for lane in session.lanes),
        "sight": tuple(_sight(sight, text) for sight in session.sight),
    }
    keys = {op.key: new.key for op, new in zip(session.ops, tables["ops"], strict=True)}
    tables["samples"] = tuple(_sample(sample, names, keys) for sample in session.samples)
    same = all(getattr(session, name) == table for name, table in tables.items())
    return session if same else replace(session, **tables)


def _process(process: Process, names: _Learned | _StandIns) -> Process:
    text = names.text
    return replace(
        process,
        command=tuple(map(names.argument, process.command)),
        machine=names.machine(process.machine),
        versions={key: text(value) for key, value in process.versions.items()},
        damage=text(process.damage),
        broken=tuple(map(text, process.broken)),
        notes=tuple(map(text, process.notes)),
        findings=tuple(
            replace(found, what=text(found.what), places=tuple(map(text, found.places)))
            for found in process.findings
        ),
    )


def _op(op: Op, names: _Learned | _StandIns) -> Op:
    text = names.text
    return replace(
        op,
        name=text(op.name),
        qualified=text(op.qualified),
        overload=text(op.overload),
        file=names.path(op.file),
    )


def _sight(sight: Sight, text: Callable[[str], str]) -> Sight:
    misses = {word: text(reason) for word, reason in sight.misses.items()}
    return replace(sight, version=text(sight.version), misses=misses)


def _sample(
    sample: Mapping[str, Any], names: _Learned | _StandIns, keys: Mapping[str, str]
) -> dict[str, Any]:
    """Its operator stays the one it is; its files are paths and nothing else."""
    found = {}
    for word, value in sample.items():
        if word == "op" and value in keys:
            found[word] = keys[value]
        elif word in _FILES and isinstance(value, str):
            found[word] = names.path(value)
        else:
            found[word] = _anything(value, names.text)
    return found


def _anything(value: Any, text: Callable[[str], str]) -> Any:
    """A value of a sample, with every text inside passed through `text`."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return {_anything(key, text): _anything(inner, text) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_anything(inner, text) for inner in value)
    return value
