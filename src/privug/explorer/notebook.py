"""Starting the explorer: in this process until it is interrupted, or in the background of a notebook."""

import atexit
import gc
import importlib
import secrets
import threading
import time
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

from privug.attack import Attack
from privug.errors import ArgumentError
from privug.explorer.answers import rough, stages
from privug.explorer.runs import Nursery
from privug.explorer.sources import Source, of_attack, of_file
from privug.mechanisms.noise import laplace
from privug.model.table import Row
from privug.observation.observations import Near
from privug.prior.discrete import Bernoulli
from privug.prior.table import Records

SECONDS = 60.0
HEIGHT = 900
STARTING = 10.0  # seconds that a server may take to start


class Explorer:
    """An explorer that runs in the background: a page on this machine, shown inside a notebook.

    `address` is where it is; `close()` ends it, and so does the end of the process.
    """

    def __init__(self, source: Source, title: str, options: Mapping[str, Any], port: int = 0, token: str = "") -> None:
        self._parts = _started(source, title, options, port, token, framed=True)
        self.address = self._parts.address
        self._thread = threading.Thread(target=self._parts.serve, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + STARTING
        while not self._parts.server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                self.close()
                raise ArgumentError("explore: the server did not start")
            time.sleep(0.01)
        atexit.register(self.close)

    def close(self) -> None:
        """End the server and all its runs."""
        self._parts.server.should_exit = True
        self._thread.join(STARTING)
        self._parts.close()
        atexit.unregister(self.close)

    def _repr_html_(self) -> str:
        source, rights = escape(self.address), "clipboard-write"
        return (
            f'<iframe src="{source}" width="100%" height="{HEIGHT}" allow="{rights}" title="Privug explorer"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Explorer at {self.address}>"


class _Parts:
    """A server, its socket, and the process that its runs are forked from."""

    def __init__(self, nursery: Nursery, listening: Any, site: Any, server: Any, token: str) -> None:
        self._nursery = nursery
        self._listening = listening
        site.port = listening.getsockname()[1]
        self.server = server
        self.address = f"http://127.0.0.1:{site.port}/{token}/"

    def serve(self) -> None:
        """Serve until the server is told to exit."""
        self.server.run(sockets=[self._listening])

    def close(self) -> None:
        """End all runs."""
        self._nursery.close()
        self._listening.close()


def _started(source: Source, title: str, options: Mapping[str, Any], port: int, token: str, *, framed: bool) -> _Parts:
    module = importlib.import_module("privug.explorer.server")  # which needs a web server
    token = token or secrets.token_urlsafe(24)
    if not token.replace("-", "").replace("_", "").isalnum():
        raise ArgumentError("explore: a token is made of letters, digits, - and _")
    settings = {"samples": 10_000, "seed": 0, "seconds": SECONDS, **options}
    listening = module.bound(port)
    state = {"title": title, "seconds": settings["seconds"], "attacks": source.at({}).to_dict()}
    nursery = Nursery(source, settings, _warmed_up)
    site = module.Site(nursery, state, token, framed=framed)
    return _Parts(nursery, listening, site, module.server_of(site), token)


def _warmed_up() -> None:
    """Answer a small question, so that everything that runs need is loaded before the first of them."""

    def mean(rows: Any) -> Any:
        return sum(row.x for row in rows) / len(rows)

    prior = {"rows": Records(3, Row(x=Bernoulli(0.5)))}
    for program in (mean, laplace(mean, sensitivity=1, epsilon=1.0)):
        attack = Attack(program, prior, lambda rows: rows[0].x, observe=Near(1 / 3, 0.01))
        for _ in islice(stages(attack, [], {"samples": 100, "seconds": SECONDS}, {}), 2):
            pass
    next(rough(attack, {"seconds": SECONDS}), None)
    gc.collect()
    gc.freeze()  # runs then share this memory instead of copying it


def explore(attack: Attack, **options: Any) -> Explorer:
    """Show an attack in the explorer, in the background; in a notebook the page appears below the cell.

    Args:
        attack: The attack, whose numbers can then be moved.
        options: `engine`, `samples`, `seed` and `seconds` of every run, as for `Attack.run`.

    Returns:
        The explorer, whose `address` a browser opens; `close()` ends it.

    Raises:
        ArgumentError: If Starlette and uvicorn are not installed, or the operating system cannot fork.
    """
    return Explorer(of_attack(attack), attack.name, _checked(options))


def serve(
    path: str | Path,
    *,
    read: Callable[[], Mapping[str, Any]] | None = None,
    names: Sequence[str] = (),
    port: int = 0,
    token: str = "",
    opened: Callable[[str], object] = webbrowser.open,
    **options: Any,
) -> None:
    """Show the attacks of a file in the explorer until it is interrupted; `privug explore` calls this.

    Args:
        path: The file, which is run again whenever one of the parameters that it declares is moved.
        read: Runs the file and returns its names; by default as `python FILE` does.
        names: The attacks to show; all of them by default.
        port: A port of this machine; any free one by default.
        token: What stands in the address, for those who want the same address again; a random one by default.
        opened: What is called with the address once it is known, such as a browser.
        options: `engine`, `samples`, `seed` and `seconds` of every run, as for `Attack.run`.

    Raises:
        ArgumentError: If Starlette and uvicorn are not installed, or the port is taken.
    """
    parts = _started(of_file(Path(path), read, names), Path(path).name, _checked(options), port, token, framed=False)
    try:
        opened(parts.address)
        parts.serve()
    finally:
        parts.close()


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in options if name not in ("engine", "samples", "seed", "seconds")]
    if unknown:
        raise ArgumentError(f"explore: {unknown[0]} is not an option; give engine, samples, seed or seconds")
    return {name: value for name, value in options.items() if value is not None}
