"""Where the attacks of the explorer come from: a file that is run again for each position, or an attack at hand."""

import runpy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from privug.arguments import check_kind, shown
from privug.attack import Attack
from privug.errors import ArgumentError, PrivugError, QuestionError
from privug.explorer.parameters import Parameter, Position, Variations, declared_by
from privug.policy.declared_checks import Check, checks_of

Names = Mapping[str, Any]
MOST_IN_LIST = 1_000  # a longer list is data


@dataclass(frozen=True, eq=False)
class Exploration:
    """The attacks of a source by name, the checks of policies on them, and what can be moved."""

    attacks: Mapping[str, Attack]
    checks: Sequence[Check]
    declared: Mapping[str, Parameter]
    _variations: dict[str, Variations] = field(default_factory=dict)

    def variations(self, name: str) -> Variations:
        """Return what can be moved in an attack besides what was declared."""
        if name not in self.attacks:
            raise ArgumentError(f"there is no attack {shown(name)}; there is {', '.join(self.attacks)}")
        if name not in self._variations:
            self._variations[name] = Variations(self.attacks[name], list(self.declared.values()))
        return self._variations[name]

    def at(self, name: str, position: Position) -> tuple[Attack, list[Check]]:
        """Return an attack at a position of what was found in it, and the checks that are about it."""
        variations = self.variations(name)
        moved = variations.at({key: value for key, value in position.items() if key not in self.declared})
        about = [replace(check, attack=moved) for check in self.checks if check.attack is variations.attack]
        return moved, about

    def to_dict(self) -> dict[str, Any]:
        """Return the names of attacks and what can be moved in each, as plain values."""
        return {
            name: {"title": attack.name, "parameters": self.parameters_of(name)}
            for name, attack in self.attacks.items()
        }

    def parameters_of(self, name: str) -> list[dict[str, Any]]:
        """Return what can be moved in an attack, as plain values."""
        return [one.to_dict() for one in (*self.declared.values(), *self.variations(name).parameters.values())]


class Source:
    """Something that attacks are read from, with declared parameters at given values.

    Args:
        read: Returns the names of a module, among which attacks and checks are found; it is called for each position.
        names: The attacks that are shown; all of them if there are none.
        script: How a script gets hold of an attack, as an expression with places for its name and a position.
    """

    def __init__(self, read: Callable[[], Names], names: Sequence[str] = (), script: str = "") -> None:
        self._read = read
        self._names = tuple(names)
        self._script = script
        self._first: Exploration | None = None
        self._latest: tuple[dict[str, float], Exploration] | None = None

    def at(self, position: Position) -> Exploration:
        """Return the attacks with declared parameters at a position; what declares none is read once."""
        if self._first is None:
            self._first = self._explored({})
        moved = {name: value for name, value in position.items() if name in self._first.declared}
        if not moved:
            return self._first
        if self._latest is None or self._latest[0] != moved:
            self._latest = moved, self._explored(moved)
        return self._latest[1]

    def _explored(self, values: Position) -> Exploration:
        names, declared = declared_by(self._read, values)
        attacks = _attacks_in(names)
        if self._names:
            missing = [name for name in self._names if name not in attacks]
            if missing:
                raise QuestionError(f"there is no attack {missing[0]!r}; there is {', '.join(attacks) or 'none'}")
            attacks = {name: attacks[name] for name in self._names}
        if not attacks:
            raise QuestionError("there is no pv.Attack at the top level; 'privug new' writes a file that has one")
        return Exploration(attacks, checks_of(names), declared)

    def script(self, name: str, position: Position, options: Mapping[str, Any]) -> str:
        """Return a Python script that prints the numbers of a position."""
        settings = ", ".join(f"{key}={value!r}" for key, value in options.items())
        return (
            f'"""What an attacker learns: {name!r} as it was set in the explorer."""\n\n'
            "import privug as pv\n\n"
            f"attack = {self._script.format(name=name, position=dict(position))}\n"
            f"print(attack.run({settings}))\n"
        )


def _attacks_in(names: Names) -> dict[str, Attack]:
    """Return each attack among the names of a module once, also those in lists and dicts."""
    found: dict[str, Attack] = {}
    for name, value in names.items():
        if name.startswith("__"):
            continue
        inner: Any = ()
        if isinstance(value, dict) and len(value) <= MOST_IN_LIST:
            inner = value.items()
        elif isinstance(value, list | tuple) and len(value) <= MOST_IN_LIST:
            inner = enumerate(value)
        for label, one in ((name, value), *((f"{name}[{key!r}]", one) for key, one in inner)):
            if isinstance(one, Attack) and all(one is not other for other in found.values()):
                found[label] = one
    return found


def of_attack(attack: Attack) -> Source:
    """Return the source of one attack at hand."""
    check_kind("explore", "attack", attack, (Attack,))
    return Source(lambda: {"attack": attack}, script="pv.explorer.varied(attack, {position!r})")


def of_file(path: Path, read: Callable[[], Names] | None = None, names: Sequence[str] = ()) -> Source:
    """Return the source of the attacks of a file."""
    script = f"pv.explorer.attack_at({str(path.resolve())!r}, {{name!r}}, {{position!r}})"
    return Source(read or partial(runpy.run_path, str(path)), names, script)


def attack_at(path: str | Path, name: str, position: Position) -> Attack:
    """Return an attack of a file with some of its parameters at other values.

    Args:
        path: A Python file.
        name: The attack's name in it.
        position: Values by the names of parameters, declared ones and those that the explorer finds.

    Returns:
        The attack.

    Raises:
        ArgumentError: If there is no such attack or parameter, or a value is not a finite number.
    """
    check_kind("attack_at", "path", path, (str, Path))
    check_kind("attack_at", "position", position, (Mapping,))
    if not Path(path).is_file():
        raise ArgumentError(f"attack_at: there is no file {shown(str(path))}")
    try:
        found = of_file(Path(path)).at(position)
    except PrivugError:
        raise
    except (Exception, SystemExit) as error:
        raise ArgumentError(f"attack_at: {path} failed with {type(error).__name__}: {error}") from error
    return found.at(name, position)[0]
