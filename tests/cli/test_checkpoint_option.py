"""`--checkpoint`: what was found is kept, another question is refused, and one file is for one attack."""

SOURCE = """
    import privug as pv

    def digits(x):
        return int(str(int(x))[::-1])

    def attack_for(most):
        return pv.Attack(digits, {"x": pv.DiscreteUniform(10, most)}, "x")

    narrow, wide = attack_for(99), attack_for(999)
"""


def test_analyze_keeps_what_it_finds(run, script, tmp_path):
    file, kept = script(SOURCE), tmp_path / "narrow.run"
    options = ("--engine", "sample", "--samples", 300, "--checkpoint", kept)
    first = run("analyze", f"{file}::narrow", *options, "--json")
    assert first.exit_code == 0, first.output
    assert kept.stat().st_size > 300 * 8
    assert run("analyze", f"{file}::narrow", *options, "--json").stdout == first.stdout
    other = run("analyze", f"{file}::wide", *options)
    assert other.exit_code == 2
    assert "the prior of 'x' differs" in other.stderr
    several = run("analyze", file, *options)
    assert several.exit_code == 2
    assert "--checkpoint is for one attack" in several.stderr


def test_sweep_keeps_its_points(run, script, tmp_path):
    file, kept = script(SOURCE), tmp_path / "sweep.run"
    options = ("--over", "most=19,29", "--measure", "bayes_risk", "--checkpoint", kept)
    first = run("sweep", file, *options)
    assert first.exit_code == 0, first.output
    assert run("sweep", file, *options).stdout == first.stdout
    other = run("sweep", file, "--over", "most=19,39", *options[2:])
    assert other.exit_code == 2
    assert "parameters differs" in other.stderr
