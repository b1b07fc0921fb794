"""Programs made at random of `try`, `if`, loops and failures: traced, they give on every input what Python gives."""

import random

import pytest

from program.test_try import called, every_input, same, traced_on_every_input

PROGRAMS, EACH = 40, 3  # numbers of tests, and of programs in each

VALUES = (
    "6 // x", "6 // y", "a // (x + y)", "PRICES[k]", "PRICES['none']", "[5, 6][y]", "int(k)", "a + 1", "x", "y - a",
    "1 // 0", "(6 // x if y > 0 else PRICES[k])", "(y and 6 // x)", "helper(x, y)", "helper(a, x)",
    "sum([6 // v for v in (x, y)])",
)  # fmt: skip
CONDITIONS = ("x > 0", "y > 0", "x == y", "k == 'many'", "a > 3", "6 // x > 2", "True", "False", "len(log) > 2")
RAISED = ("ZeroDivisionError", "KeyError", "ValueError", "IndexError")
CAUGHT = (*RAISED, "(KeyError, ValueError)", "ArithmeticError", "LookupError", "Exception")


class Writer:
    """Writes a program at random."""

    def __init__(self, rng):
        self.rng = rng
        self.loops = 0

    def block(self, depth, in_loop):
        lines = [self.statement(depth, in_loop) for _ in range(self.rng.randint(1, 3))]
        return [f"    {line}" for statement in lines for line in statement]

    def statement(self, depth, in_loop):
        kind = self.rng.random()
        if depth == 0 or kind < 0.3:
            return [self.simple(in_loop)]
        if kind < 0.5:
            otherwise = ["else:", *self.block(depth - 1, in_loop)] if self.rng.random() < 0.4 else []
            return [f"if {self.rng.choice(CONDITIONS)}:", *self.block(depth - 1, in_loop), *otherwise]
        if kind < 0.65:
            self.loops += 1
            item = f"v{self.loops}"
            return [f"for {item} in (1, x, y):", *self.block(depth - 1, True), f"    a += {item}"]
        return self.attempt(depth - 1, in_loop)

    def simple(self, in_loop):
        value, leave = self.rng.choice(VALUES), self.rng.choice(["break", "continue"]) if in_loop else "b += 1"
        error = self.rng.choice(RAISED)
        choices = [
            f"a = {value}",
            f"a += {value}",
            f"log.append({value})",
            f"raise {error}(f'{{x}}')",
            "return a, len(log)",
        ]
        return self.rng.choices([*choices, leave, "b += 1"], [35, 15, 20, 8, 6, 8, 8])[0]

    def attempt(self, depth, in_loop):
        lines = ["try:", *self.block(depth, in_loop)]
        for _ in range(self.rng.randint(1, 2)):
            again = ["    raise"] if self.rng.random() < 0.15 else []
            lines += [f"except {self.rng.choice(CAUGHT)}:", *self.block(depth, in_loop), *again]
        if self.rng.random() < 0.3:
            lines += ["else:", *self.block(depth, in_loop)]
        return [*lines, "finally:", "    b += 10", "    a += b"] if self.rng.random() < 0.3 else lines

    def module(self):
        helper = [line.replace("helper(", "max(").replace("a, len(log)", "a") for line in self.block(2, False)]
        body = [f"    {line}" for line in ["try:", *self.block(3, False), "except Exception:", "    b += 7"]]
        return [
            "PRICES = {'1': 10, '2': 20}", "def helper(x, y):", "    a, b, log, k = 0, 0, [], '2'", *helper,
            "    return a", "def program(x, y, k):", "    a, b, log = 1, 0, []", *body,
            "    return a + 1000 * b, len(log)",
        ]  # fmt: skip


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_random_programs(number, tmp_path):
    for seed in range(EACH * number, EACH * (number + 1)):
        source, file = "\n".join(Writer(random.Random(seed)).module()), tmp_path / f"random_{seed}.py"
        file.write_text(source, encoding="utf-8")
        names = {"__name__": file.stem}
        exec(compile(source, str(file), "exec"), names)
        found = traced_on_every_input(names["program"])
        for inputs, value in zip(every_input(), found, strict=True):
            expected = called(names["program"], *inputs)
            assert same(expected, value), f"{source}\n{inputs}: {expected}, not {value}"
