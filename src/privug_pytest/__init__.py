"""Privug in pytest: the fixture `assert_private`, and reports of what it checked (`--privug-report=DIR`).

A package of its own, because pytest imports its plugins at every start, and a module inside `privug` would bring all of
Privug with it. Privug itself is imported when a test asks for it, or when reports are wanted.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Record = dict[str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("privug", "what attackers may learn")
    group.addoption("--privug-report", metavar="DIR", help="Write what assert_private checked to this folder.")
    group.addoption("--privug-show-secrets", action="store_true", help="Show the outputs that were found in reports.")


@pytest.fixture(scope="session")
def assert_private() -> Callable[..., Any]:
    """Return `pv.policy.assert_private`."""
    import privug.policy

    return privug.policy.assert_private


def pytest_configure(config: pytest.Config) -> None:
    """Listen to assertions if reports are wanted."""
    if config.getoption("--privug-report"):
        config.pluginmanager.register(Recorder(config), "privug-recorder")


class Recorder:
    """Notes every assertion of a test run and writes the reports at its end."""

    def __init__(self, config: pytest.Config) -> None:
        from privug.policy.check_reports import listeners

        self._config = config
        # A folder is meant from where the command was given, wherever a test may go.
        self._folder = Path(config.invocation_params.dir, config.getoption("--privug-report"))
        self._records: list[Record] = []
        self._listeners = listeners
        listeners.append(self._heard)

    def _heard(self, outcome: Any) -> None:
        secrets = bool(self._config.getoption("--privug-show-secrets"))
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        plain = {"test": test, "name": outcome.name} | outcome.verdict.to_dict(secrets=secrets)
        self._records.append({"plain": plain, "lines": outcome.verdict.lines(secrets=secrets)})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of pytest-xdist has noted."""
        self._records += getattr(node, "workeroutput", {}).get("privug", [])

    def pytest_sessionfinish(self) -> None:
        """Write the reports, or hand what was noted to the process that will."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["privug"] = self._records
            return
        from privug_pytest.reports import write

        write(self._folder, self._records)

    def pytest_unconfigure(self) -> None:
        """Stop listening."""
        self._listeners.remove(self._heard)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the reports are."""
        checks = f"{len(self._records)} check{'s' if len(self._records) != 1 else ''}"
        terminalreporter.write_line(f"privug: {checks}, reported in {self._folder}")
