"""Reports about several results: next to each other as text, or in one file with a comparison first."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from privug.arguments import check_kind, kinds_checked
from privug.attack import Result
from privug.errors import ArgumentError
from privug.report.files import FORMATS, written
from privug.report.text import side_by_side as beside


@kinds_checked
def side_by_side(title: str, results: Sequence[Result]) -> str:
    """Return the reports of several results next to each other, as text.

    >>> import privug as pv
    >>> result = pv.Attack(lambda x: x, prior={"x": pv.Bernoulli(0.2)}, secret="x").run(pv.equals(1))
    >>> pv.side_by_side("Two runs", [result, result]).splitlines()[0]
    'Two runs'
    """
    _check("side_by_side", results)
    return beside(title, [replace(result.content, title=result.attack.name) for result in results])


@kinds_checked
def save_report(path: str | Path, results: Sequence[Result], *, title: str = "") -> Path:
    """Write one report about several results to a file: .html, with a comparison first, .txt or .json.

    >>> import tempfile, privug as pv
    >>> attack = pv.Attack(lambda x: x > 1, {"x": pv.DiscreteUniform(0, 3)}, "x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = [attack.run(pv.equals(True)), attack.run(pv.equals(False))]
    ...     pv.save_report(f"{folder}/report.txt", results).stat().st_size > 0
    True
    """
    _check("save_report", results)
    return written(path, FORMATS, results, title)


def _check(function: str, results: Sequence[Result]) -> None:
    if not isinstance(results, list | tuple) or not results:
        raise ArgumentError(f"{function}: a list of results is needed, such as [first.run(), second.run()]")
    for result in results:
        check_kind(function, "results", result, (Result,))
