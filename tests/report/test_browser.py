"""The report in a browser: everything is drawn, nothing is fetched, it fits a phone, and it is accessible."""

import os
import shutil
from pathlib import Path

import pytest

import privug as pv
from privug.cli import running_example

pytestmark = pytest.mark.slow  # a browser is started
AXE = os.environ.get("PRIVUG_AXE", "node_modules/axe-core/axe.min.js")


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


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    results = [attack.run() for attack in (running_example.lot, running_example.bit)]
    long = pv.Attack(lambda x: x, {"x": pv.Choice(["a" * 300, "b" * 300])}, "x", name="n" * 300).run()
    return pv.save_report(tmp_path_factory.mktemp("browser") / "report.html", [*results, long])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_in_a_browser(browser, report, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    requests, problems = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(report.as_uri())
    assert requests == [report.as_uri()]
    assert problems == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.evaluate("[...document.querySelectorAll('figure svg')].map(e => e.getBoundingClientRect().toJSON())")
    assert len(boxes) == 3
    assert all(box["width"] > 200 and box["height"] > 100 and box["right"] <= width for box in boxes)
    drawn = page.evaluate("[...document.querySelectorAll('figure svg')].map(e => e.querySelectorAll('path').length)")
    assert min(drawn) > 3
    page.close()


def test_the_report_is_accessible(browser, report):
    if not Path(AXE).is_file():
        pytest.skip("axe-core is not installed: npm install axe-core, or name its file in PRIVUG_AXE")
    for scheme in ("light", "dark"):
        page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
        page.goto(report.as_uri())
        page.add_script_tag(path=AXE)
        found = page.evaluate("axe.run()")["violations"]
        serious = [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")]
        assert serious == []
        page.close()
