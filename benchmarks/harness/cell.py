"""One cell, in a process of its own: `python -m harness.cell FD MODULE TASK TOOL`, spoken to over a pipe.

It prepares and does the work once that does not count; then it works each time it is asked to.
"""

import importlib
import os
import resource
import sys
import time
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.tasks import TOOLS, Answer, Work


def peak_memory() -> int:
    """Return the most bytes this process has had in memory."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would count the process that started this one
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def timed(work: Work) -> dict[str, Any]:
    started = time.perf_counter()
    found = work()
    spent = time.perf_counter() - started
    if not isinstance(found, Answer):
        found = Answer(() if found is None else (found,) if isinstance(found, (int, float)) else found)
    return {
        "seconds": (spent if found.seconds is None else found.seconds) / found.share,
        "fixed": found.fixed / found.share,
        "values": [float(value) for value in found.values],
        "effective": float(found.effective),
        "share": found.share,
        "note": found.note,
    }


def serve(pipe: Connection, module: str, task: str, tool: str) -> None:
    warnings.simplefilter("ignore")
    prepare = importlib.import_module(module).TASKS[task].cells[tool]
    for name in TOOLS[tool].imports:
        importlib.import_module(name)
    baseline = peak_memory()
    started = time.perf_counter()
    work = prepare()
    found = timed(work)
    pipe.send({**found, "first": time.perf_counter() - started, "memory": peak_memory() - baseline})
    while pipe.recv():
        pipe.send({**timed(work), "memory": peak_memory() - baseline})


def main(descriptor: str, *names: str) -> None:
    pipe = Connection(int(descriptor))
    try:
        serve(pipe, *names)
    except EOFError:  # nobody is listening any more
        pass
    except BaseException as error:
        traceback.print_exc()
        sys.stderr.flush()
        pipe.send({"crash": f"{type(error).__name__}: {error}".splitlines()[0][:200]})
    pipe.close()
    os._exit(0)  # threads and pools of the tools do not keep anybody waiting


if __name__ == "__main__":
    main(*sys.argv[1:])
