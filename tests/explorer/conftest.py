"""An explorer in a process of its own, and a browser to look at it with."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

TOKEN = "token-of-the-tests"


class Running:
    """An explorer of a file, and its address."""

    def __init__(self, path, *options: str) -> None:
        command = [sys.executable, "-m", "privug.cli.main", "explore", str(path), "--no-browser", "--token", TOKEN]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "http://" in line, line + (self.process.communicate()[1] or "")
        self.address = line.rsplit(" ", 1)[1].strip()
        self.port = int(self.address.split(":")[2].split("/")[0])

    def end(self, how: int = signal.SIGINT) -> int:
        """Send a signal, and return the exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, how)
        code = self.process.wait(20)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    """Return a function that starts an explorer of a program text once, or a fresh one; all are ended in the end."""
    pytest.importorskip("starlette", reason="the extra 'web' is not installed")
    pytest.importorskip("uvicorn", reason="the extra 'web' is not installed")
    started = {}

    def start(text: str, *options: str, fresh: bool = False) -> Running:
        key = (text, options, len(started) if fresh else -1)
        if key not in started:
            path = tmp_path_factory.mktemp("explorer") / "survey.py"
            path.write_text(textwrap.dedent(text), encoding="utf-8")
            started[key] = Running(path, *options)
        return started[key]

    yield start
    for one in started.values():
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on this machine: apt-get install chromium")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()
