"""The explorer: from a slider's move to the redrawn page, and its memory over many moves.

python benchmarks/explorer.py [--moves 30] [--memory 1000]     # needs the extra 'web', playwright and Chromium
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
CLAMPED = """
import privug as pv


def clamped_mean(xs):
    return sum(min(max(x, 0.0), 100.0) for x in xs) / 20


noisy = pv.mechanisms.laplace(clamped_mean, sensitivity=5.0, epsilon=1.0)
attack = pv.Attack(
    noisy, {"xs": pv.Array(pv.Normal(50, sd=20), 20)}, lambda xs: xs[0], observe=pv.near(52.0, within=0.5)
)
"""

REDRAWN = """(old) => {
    const drawn = document.getElementById('sentences').dataset.drawn;
    return drawn !== old && drawn.endsWith('answer');  // a rough answer does not count
}"""


def started(path):
    command = [sys.executable, "-m", "privug.cli.main", "explore", str(path), "--no-browser", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return process, json.loads(process.stdout.readline())["address"]


def resident(process):
    """Return the memory of a process and of those that it forked, in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    own = int(status.split("VmRSS:")[1].split()[0]) / 1024
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return own + sum(resident(int(child)) for child in children)


def heap(page):
    """Return what the page holds after its garbage was collected, in MiB."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return session.send("Runtime.getHeapUsage")["usedSize"] / 2**20


def measured(page, moves):
    """Return the seconds from each move of the first slider to the sentence drawn anew."""
    slider = page.locator("input[type=range]").first
    slider.focus()
    seconds = []
    for _ in range(moves):
        before = page.evaluate("() => document.getElementById('sentences').dataset.drawn")
        began = time.perf_counter()
        slider.press("ArrowRight")
        page.wait_for_function(REDRAWN, arg=before, polling="raf")
        seconds.append(time.perf_counter() - began)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=30)
    parser.add_argument("--memory", type=int, default=1000)
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    folder = Path(tempfile.mkdtemp())
    (folder / "clamped_mean.py").write_text(CLAMPED, encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for path in (EXAMPLES / "explore_running_example.py", folder / "clamped_mean.py"):
            process, address = started(path)
            page = browser.new_page()
            page.goto(address)
            page.wait_for_selector("body[data-state=done]", timeout=60_000)
            seconds = measured(page, options.moves)
            print(f"{path.stem}: median {1000 * statistics.median(seconds):.0f} ms from move to redrawn page", end="")
            print(f" ({1000 * min(seconds):.0f} to {1000 * max(seconds):.0f} ms, {options.moves} moves)")
            if path.stem == "explore_running_example" and options.memory:
                before, held = resident(process.pid), heap(page)
                slider = page.locator("input[type=range]").first
                for number in range(options.memory):
                    slider.press("ArrowLeft" if number % 2 else "ArrowRight")
                page.wait_for_selector("body[data-state=done]")
                print(f"memory: {before:.0f} MiB before, {resident(process.pid):.0f} MiB after {options.memory} moves")
                print(f"memory of the page: {held:.1f} MiB before, {heap(page):.1f} MiB after")
            page.close()
            process.terminate()
            process.wait()
        browser.close()


if __name__ == "__main__":
    main()
