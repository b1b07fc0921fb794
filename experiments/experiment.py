"""An experiment: where it is in the paper, and what was found by running it."""

import ast
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from privug.escaping import inert

from . import ORDER
from .findings import Findings


@dataclass
class Experiment:
    """A table or figure of the paper, and what has been found by reproducing it."""

    name: str
    title: str
    paper: str
    findings: Findings | None = None
    failure: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    pictures: dict[str, str] = field(default_factory=dict)
    """SVG by caption."""

    @property
    def is_fine(self) -> bool:
        """Whether it came to an end and missed no exact value."""
        return self.findings is not None and not self.failure and not self.findings.missed

    def run(self) -> None:
        """Run the experiment; an error of its is kept, so that others can go on."""
        started, worked = time.perf_counter(), time.process_time()
        try:
            self.findings = import_module(f"{__package__}.{self.name}").run()
        except Exception as error:
            self.failure = inert(f"{type(error).__name__}: {error}")
            traceback.print_exc()
        self.seconds, self.cpu = time.perf_counter() - started, time.process_time() - worked

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of it as plain values."""
        found = self.findings or Findings()
        times = {"seconds": round(self.seconds, 3), "cpu_seconds": round(self.cpu, 3)}
        head = {"name": self.name, "title": self.title, "paper": self.paper, "failure": self.failure or None}
        return {**head, **times, **found.to_dict()}


def experiments() -> dict[str, Experiment]:
    """Return what there is by name, in the stated order; nothing is imported for that."""
    found = {}
    for place, beginning in enumerate(ORDER):
        for path in sorted(Path(__file__).parent.glob(f"{beginning}*.py")):
            names = [other for other in ORDER if path.stem.startswith(other)]
            described = _described(path)
            if described.paper and max(names, key=len) == ORDER[place]:
                found[path.stem] = described
    return found


def _described(path: Path) -> Experiment:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title = (ast.get_docstring(tree) or path.stem).splitlines()[0].rstrip(".")
    paper = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id == "PAPER"
    ]
    return Experiment(path.stem, title, str(paper[0]) if paper else "")


def summary(done: Sequence[Experiment]) -> str:
    """Say in one line how many exact values were met."""
    judged = [line for e in done if e.findings for line in e.findings.lines if line.agrees is not None]
    met, failed = sum(bool(line.agrees) for line in judged), [e.name for e in done if e.failure]
    times = f"{sum(e.seconds for e in done):,.0f} s"
    told = f"{met} of {len(judged)} exact values met by {len(done)} experiments in {times}"
    return f"{told}; failed: {', '.join(failed)}" if failed else told
