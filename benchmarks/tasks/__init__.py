"""The tasks, by module; a cell's process imports its own module only."""

import importlib
from dataclasses import replace

from harness.tasks import Task

MODULES = (
    "posteriors",
    "finite",
    "enumeration",
    "neighbours",
    "drawing",
    "calling",
    "frames",
    "queries",
    "tables",
    "published",
    "counts",
    "observations",
    "exact",
)


def load() -> dict[str, Task]:
    """Import all modules of tasks and return what they have by name."""
    found = {}
    for name in MODULES:
        module = f"tasks.{name}"
        tasks = importlib.import_module(module).TASKS
        found |= {key: replace(task, module=module) for key, task in tasks.items()}
    return found
