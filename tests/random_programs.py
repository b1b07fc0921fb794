"""Small random Python programs with all kinds of control flow, for comparing tiers with plain calls."""

import linecache
import random
from collections.abc import Callable
from typing import Any

NAMES = ("a", "b", "c", "d", "e")


class Writer:
    """Writes one random function of three whole numbers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._loops = 0
        self._fresh = 0

    def source(self) -> str:
        lines = [
            "def twice(x, y):",
            "    if x > y:",
            "        return x * 2",
            "    for k in range(2):",
            "        if y + k == x:",
            "            return k",
            "        x += y",
            "    return x",
            "",
            "def program(a, b, c):", "    d = e = 0", "    xs = []", "    h = [0, 0, 0]", "    g = {}",
        ]  # fmt: skip
        lines += self._block(1, 4)
        lines.append(
            f"    return ({self._number(2)}, d, e, sum(xs), len(xs), h[0], h[1], h[2], g.get(0, -1), {self._truth(1)})"
        )
        return "\n".join(lines) + "\n"

    def _pick(self, *choices: Callable[[], Any]) -> Any:
        return self._random.choice(choices)()

    def _block(self, depth: int, most: int) -> list[str]:
        return [line for _ in range(self._random.randint(1, most)) for line in self._statement(depth)]

    def _statement(self, depth: int) -> list[str]:
        pad = "    " * depth
        simple = [
            lambda: [f"{pad}{self._target()} = {self._number(2)}"],
            lambda: [f"{pad}{self._target()} += {self._number(1)}"],
            lambda: [f"{pad}{self._target()}, {self._target()} = {self._number(1)}, {self._number(1)}"],
            lambda: [f"{pad}xs.append({self._number(1)})"],
            lambda: [f"{pad}h[{self._number(1)} % 3] += {self._number(1)}"],
            lambda: [f"{pad}h[{self._random.randint(0, 2)}] = {self._number(1)}"],
            lambda: [f"{pad}g[{self._number(0)} % 2] = {self._number(1)}"],
            lambda: [f"{pad}{self._target()} = {self._list()}"],
            lambda: [f"{pad}h[0], h[2] = h[2], {self._number(1)}"],
            lambda: [f"{pad}xs += [{self._number(1)}, {self._number(0)}]"],
            lambda: [f"{pad}h = {self._random.choice(['h[:]', 'list(h)', '[x + 1 for x in h]', 'sorted(h)', 'h'])}"],
            lambda: [f"{pad}{self._target()} = twice({self._number(1)}, {self._number(0)})"],
            lambda: [f"{pad}f = lambda x: x + {self._number(0)} if x > 0 else {self._number(0)}", f"{pad}d = f(a)"],
            lambda: [f"{pad}{self._target()} = g.get({self._number(0)} % 2, {self._number(0)})"],
        ]
        if depth < 4:
            simple += [lambda: self._if(depth)] * 4 + [lambda: self._for(depth)] * 2
        if self._loops:
            simple += [
                lambda: [f"{pad}if {self._truth(1)}:", f"{pad}    {self._random.choice(['break', 'continue'])}"]
            ] * 2
        if depth > 1 and self._random.random() < 0.15:
            return [f"{pad}return ({self._number(1)}, d, e, sum(xs), len(xs), h[0], h[1], h[2], 0, True)"]
        return self._pick(*simple)

    def _if(self, depth: int) -> list[str]:
        pad = "    " * depth
        lines = [f"{pad}if {self._truth(2)}:", *self._block(depth + 1, 2)]
        if self._random.random() < 0.3:
            lines += [f"{pad}elif {self._truth(1)}:", *self._block(depth + 1, 2)]
        if self._random.random() < 0.5:
            lines += [f"{pad}else:", *self._block(depth + 1, 2)]
        return lines

    def _for(self, depth: int) -> list[str]:
        pad = "    " * depth
        self._fresh += 1
        name = f"i{self._fresh}"
        items = self._random.choice(["range(3)", "(a, b, c)", "[1, 2]", "h", "enumerate((a, b))", "zip((a, b), (b, c))",
                                      "enumerate(h)", "zip(h, (b, c))", "reversed(h)", "h[1:]", "xs[:2]"])  # fmt: skip
        head = f"{name}, d" if items.startswith(("enumerate", "zip")) else name
        self._loops += 1
        lines = [f"{pad}for {head} in {items}:", f"{pad}    e = e + {name}", *self._block(depth + 1, 3)]
        self._loops -= 1
        if self._random.random() < 0.3:
            lines += [f"{pad}else:", *self._block(depth + 1, 1)]
        return lines

    def _target(self) -> str:
        return self._random.choice(NAMES)

    def _list(self) -> str:
        condition = self._truth(0).replace("a", "x", 1)
        return self._random.choice(
            [
                f"sum(x for x in (a, b, c) if {condition})",
                f"len([x for x in (a, b, c, d) if {condition}])",
                "max(a, b, c)",
                "min((a, b, d))",
                f"int(any(x > 0 for x in (a, b) if {condition}))",
                "sorted((a, b, c))[1]",
                f"max([x for x in (a, b, c) if {condition}], default=7)",
            ]
        )

    def _number(self, depth: int) -> str:
        leaf = [lambda: self._random.choice(NAMES), lambda: str(self._random.randint(-2, 3))]
        if depth == 0:
            return self._pick(*leaf)
        inner = lambda: self._number(depth - 1)
        return self._pick(
            *leaf,
            lambda: f"({inner()} {self._random.choice('+-')} {inner()})",
            lambda: f"({self._random.choice(NAMES)} * {self._random.randint(-2, 2)})",
            lambda: f"({inner()} if {self._truth(depth - 1)} else {inner()})",
            lambda: f"({inner()} // b if b != 0 else {inner()})",
            lambda: f"({inner()} % (abs({inner()}) + 1))",
            lambda: f"abs({inner()})",
        )

    def _truth(self, depth: int) -> str:
        number = lambda: self._number(max(depth - 1, 0))
        leaf = [
            lambda: f"{number()} {self._random.choice(['<', '<=', '==', '!=', '>'])} {number()}",
            lambda: f"{number()} in (0, 1, {number()})",
            lambda: f"-1 <= {number()} < {number()}",
        ]
        if depth == 0:
            return self._pick(*leaf)
        inner = lambda: self._truth(depth - 1)
        return self._pick(
            *leaf, lambda: f"({inner()} and {inner()})", lambda: f"({inner()} or {inner()})", lambda: f"not {inner()}"
        )


class TableWriter:
    """Writes one random function of a table with the columns name, age and zip."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def source(self) -> str:
        lines = [
            "def program(records):",
            "    n = t = 0",
            "    best = records[0]",
            "    groups = {}",
            "    counts = {}",
        ]
        lines += ["    seen = set()", "    kept = []", "    for r in records:"]
        for _ in range(self._random.randint(2, 5)):
            lines += self._statement("        ")
        lines += [f"    {line}" for line in self._random.sample(self._closing(), 2)]
        parts = self._random.sample(self._results(), 4)
        lines.append(f"    return (n, t, best.age, {', '.join(parts)})")
        return "\n".join(lines) + "\n"

    def _choice(self, *options: str) -> str:
        return self._random.choice(options)

    def _condition(self) -> str:
        simple = [
            "r.name == 'Ann'",
            "r.zip != '2300'",
            "r.age > 3",
            "r.age % 2 == 0",
            "r.zip[:2] == '23'",
            "r.age in (1, 2, 5)",
        ]
        simple += [
            "r.name in ('Bob', 'Eve')",
            "r.zip in seen",
            "r.age >= best.age",
            "r.zip in groups",
            "len(kept) < 2",
            "n > 1",
        ]
        first, second = self._choice(*simple), self._choice(*simple)
        return self._choice(first, f"{first} and {second}", f"{first} or not {second}", f"not ({first})")

    def _statement(self, pad: str) -> list[str]:
        actions = [
            "n += 1", "t += r.age", "n = max(n, r.age)", "kept.append(r.age)", "kept.append(t)", "seen.add(r.zip)",
            "counts[r.zip] = counts.get(r.zip, 0) + 1", "groups.setdefault(r.zip, []).append(r.age)", "best = r",
            "counts[r.name] = t", "t = t + counts.get(r.name, 2)", "t += len(seen)", "n = n - 1 if r.age > 4 else n + 2",
            "t += len(groups.get(r.zip, []))", "n = sum(kept)",
        ]  # fmt: skip
        act = lambda: self._random.choice(actions)
        shape = self._random.random()
        if shape < 0.25:
            return [f"{pad}{act()}"]
        lines = [f"{pad}if {self._condition()}:", f"{pad}    {act()}"]
        if shape < 0.45:
            lines.append(f"{pad}    {self._choice('continue', 'break', act())}")
        if shape < 0.65:
            lines += [f"{pad}elif {self._condition()}:", f"{pad}    {act()}"]
        if shape > 0.55:
            lines += [f"{pad}else:", f"{pad}    {act()}"]
        return lines

    def _closing(self) -> list[str]:
        return [
            "for key in sorted(counts):\n        t = t * 2 + counts[key]",
            "for key, ages in groups.items():\n        n += len(ages) if len(ages) > 1 else sum(ages)",
            "if kept and kept[0] > 2:\n        t = t - kept[-1]",
            "ordered = sorted(records, key=lambda r: r.age)\n    t += ordered[0].age * 10",
            "young = [r for r in records if r.age < 3]\n    n += len(young)",
            "while n > 3:\n        n -= 2",
        ]

    def _results(self) -> list[str]:
        return [
            "len(kept)", "sum(kept)", "len(seen)", "max(counts.values(), default=0)", "len(groups)", "len(counts)",
            "best.name == 'Ann'", "max(records, key=lambda r: r.age).age", "sum(r.age for r in records if r.name == best.name)",
            "any(r.zip == '2300' for r in records)", "min((r.age for r in records if r.name != 'Bob'), default=-1)",
            "len({r.name for r in records})", "sum(len(ages) for ages in groups.values())", "'2450' in counts",
        ]  # fmt: skip


class PlateWriter(TableWriter):
    """Writes one random function of a table that mostly treats all rows alike: counts, sums, filters."""

    def source(self) -> str:
        lines = ["def helper(r, k):", "    if r.age > k:", "        return r.age - k", "    return 0", ""]
        lines += ["def program(records):", "    n = t = u = 0", "    h = [0, 0, 0]", "    x = 7"]
        for _ in range(self._random.randint(1, 2)):
            lines.append(
                f"    for {self._choice('r in records', 'name, age, zip_code in records', 'r in records[1:]')}:"
            )
            if "zip_code" in lines[-1]:
                lines.append("        x = age * 2 if name == 'Ann' else age")
                lines.append(f"        t += {self._choice('x', 'age', 'len(name)', '1 if zip_code[0] == name else x')}")
                continue
            for _ in range(self._random.randint(1, 4)):
                lines += self._statement("        ")
        parts = self._random.sample(self._results(), 4)
        lines.append(f"    return (n, t, u, {self._choice('1', '1', 'x')}, h[0], h[1], h[2], {', '.join(parts)})")
        return "\n".join(lines) + "\n"

    def _condition(self) -> str:
        simple = [
            "r.name == 'Ann'", "r.zip != '2300'", "r.age > 3", "r.age % 2 == 0", "r.zip[:2] == '23'", "u > 2",
            "r.age in (1, 2, 5)", "r.name in ('Bob', 'Eve')", "2 <= r.age < 5", "r.age > records[0].age", "n > 1",
        ][: 10 if self._random.random() < 0.95 else 11]  # fmt: skip
        first, second = self._choice(*simple), self._choice(*simple)
        return self._choice(first, f"{first} and {second}", f"{first} or not {second}", f"not ({first})")

    def _statement(self, pad: str) -> list[str]:
        actions = [
            "n += 1", "t += r.age", "n = n + r.age", "t -= r.age * 2", "u += helper(r, 3)", "h[0] += 1", "h[2] += r.age",
            "h[1] -= len(r.zip)", "n += 2 if r.age > 3 else 0", "t += max(r.age, 2)", "x = r.age; t += x", "n += r.age // 2",
            "t += sum(1 for z in ('2300', '2450') if r.zip == z)", "x = r.age", "t += x", "u = u + t", "t += int(r.zip) % 7",
            "t += 12 // r.age if r.age else 1", "t = t + n",
        ][: 14 if self._random.random() < 0.9 else 19]  # fmt: skip
        act = lambda: self._random.choice(actions)
        shape = self._random.random()
        if shape < 0.2:
            return [f"{pad}{act()}"]
        if shape < 0.27:
            return [f"{pad}for z in ('2300', '2310'):", f"{pad}    if r.zip == z:", f"{pad}        {act()}"]
        lines = [f"{pad}if {self._condition()}:", f"{pad}    {act()}"]
        if shape < 0.5:
            lines.append(f"{pad}    {self._choice('continue', act(), act())}")
        if shape < 0.7:
            lines += [f"{pad}elif {self._condition()}:", f"{pad}    {act()}"]
        if shape > 0.6:
            lines += [f"{pad}else:", f"{pad}    {act()}"]
        return lines

    def _results(self) -> list[str]:
        return [
            "sum(r.age for r in records if r.name == records[0].name)", "any(r.zip == '2300' for r in records)",
            "all(r.age < 6 or r.name == 'Ann' for r in records)", "len([r for r in records if r.age > 2 and r.zip != '2300'])",
            "sum(r.age for r in records) / len(records)", "max(r.age for r in records)", "min([r.age - 2 for r in records[1:]])",
            "sum([x * x for x in (r.age for r in records if r.age > 1)])", "len(records)", "sum(helper(r, 2) for r in records)",
            "sum(map(lambda r: r.age, records))", "any(r.age > t for r in records)", "sum(r.age > 3 for r in records)",
            "1 if [r for r in records if r.age > 5] else 0", "3 in [r.age for r in records]", "sum(2 for _ in records)",
        ]  # fmt: skip


def random_program(seed: int, writer: Any = Writer) -> tuple[str, Callable[..., Any]]:
    """Return the source of a random program, and the program."""
    source = writer(seed).source()
    return source, compiled(source, f"<random {writer.__name__} {seed}>")


def compiled(source: str, name: str, **names: Any) -> Callable[..., Any]:
    """Return the program that some source defines, where some names are known; whoever looks for its source finds it."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), names)
    program: Callable[..., Any] = names["program"]
    return program
