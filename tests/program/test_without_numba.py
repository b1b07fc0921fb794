"""Without Numba programs are called that would be compiled, and it is said what to install."""

import subprocess
import sys
import textwrap

import pytest

HIDDEN = "import sys; sys.modules['numba'] = None; sys.modules['llvmlite'] = None\n"
ATTACK = """
import privug as pv
def steps(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count
attack = pv.Attack(steps, {"n": pv.DiscreteUniform(1, 100_000)}, secret="n")
"""


def printed(source: str) -> str:
    code = HIDDEN + textwrap.dedent(source)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("native", ["auto", True])
def test_a_program_that_could_be_compiled_is_called(native):
    said = printed(
        f"{ATTACK}\npv.configure(native={native!r})\n"
        "result = attack.run(engine='sample', samples=500, seed=1)\nprint(result.lifting)"
    )
    assert said.startswith("python (")
    assert "not compiled: that needs numba: pip install 'privug[native]'" in said


def test_everything_else_works():
    said = printed(
        """
        import privug as pv
        attack = pv.Attack(lambda a, b: a + b, {"a": pv.DiscreteUniform(1, 6), "b": pv.DiscreteUniform(1, 6)}, "a")
        print(attack.run(pv.equals(12)).posterior.mean(), attack.run(samples=100, engine="sample").engine)
        """
    )
    assert said.split() == ["6", "(exact)", "sample"]


def test_the_doctor_says_what_to_install():
    said = printed(
        "import sys\nfrom privug.cli.main import main\nsys.argv = ['privug', 'doctor', '--only', 'native']\nmain()"
    )
    assert "missing   native    compiled programs (no numba: pip install 'privug[native]')" in said


def test_the_demo_needs_no_compiler():
    assert printed("import sys\nfrom privug.cli.main import main\nsys.argv = ['privug', 'demo']\nmain()")
