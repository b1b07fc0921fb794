"""The page in a browser: what it shows is what the library gives, whatever is moved, at any width and in the dark."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.explorer.conftest import Running
from tests.explorer.test_explorer_server import BAD, SURVEY

import privug as pv

pytestmark = pytest.mark.slow  # a browser is started
AXE = Path(os.environ.get("PRIVUG_AXE", "node_modules/axe-core/axe.min.js"))
EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/explore_*.py"))


def attack_of(spread, seen):
    prior = {"x": pv.Normal(10, sd=spread), "y": pv.Normal(0, sd=1)}
    return pv.Attack(lambda x, y: x + y, prior, "x", observe=pv.near(seen, within=0.5), name="sum")


class Page:
    """A page of the explorer in a browser, with all that went wrong on it."""

    def __init__(self, browser, address, width=1280, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.problems, self.requests = [], []
        self.page.on("console", lambda one: self.problems.append(one.text) if one.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
        self.settle()

    def settle(self):
        self.page.wait_for_selector("body[data-state=done]", timeout=60_000)

    def field(self, name):
        return self.page.locator(f'[data-parameter="{name}"] input[type=number]')

    def slider(self, name):
        return self.page.locator(f'[data-parameter="{name}"] input[type=range]')

    def set(self, name, value):
        self.field(name).fill(str(value))
        self.field(name).press("Enter")
        self.settle()

    def question(self):
        """Return the numbers of the first question, before and after."""
        return re.findall(r"^[\d.]+$", self.page.inner_text("#questions"), re.MULTILINE)

    def close(self):
        self.context.close()


@pytest.fixture
def opened(browser, explorer):
    pages = []

    def open_page(text=SURVEY, **options):
        pages.append(Page(browser, explorer(text).address, **options))
        return pages[-1]

    yield open_page
    for one in pages:
        one.close()


def expected(spread, seen):
    result = attack_of(spread, seen).run()
    return [belief.probability(lambda x: x > 11).number() for belief in (result.prior, result.posterior)]


def test_the_numbers_on_the_page_are_those_of_the_library(opened):
    page = opened()
    assert page.question() == expected(2.0, 12.0)
    page.set("spread", 3.5)
    assert page.question() == expected(3.5, 12.0)
    slider = page.slider("seen: value")
    slider.focus()
    for _ in range(3):
        slider.press("ArrowRight")
    page.settle()
    assert page.question() == expected(3.5, float(page.field("seen: value").input_value()))
    assert "violated" in page.page.inner_text("#policies")
    assert page.problems == []
    assert all(url.startswith(("http://127.0.0.1", "data:")) for url in page.requests)


def test_fifty_quick_moves_end_in_one_answer(opened):
    page = opened()
    slider = page.slider("seen: value")
    slider.focus()
    for _ in range(50):
        slider.press("ArrowRight")
    page.settle()
    assert page.question() == expected(2.0, float(page.field("seen: value").input_value()))


def test_undo_pin_and_reload_by_link(opened, browser):
    page = opened()
    first = page.question()
    page.page.click("#pin")
    page.set("spread", 4.0)
    moved = page.question()
    assert moved != first
    table = page.page.inner_text("#pins")
    assert first[1] in table
    assert moved[1] in table
    link = page.page.evaluate("location.href")
    page.page.click("#undo")
    page.settle()
    assert page.question() == first
    again = Page(browser, link)
    again.page.wait_for_selector("#pins-card:not([hidden])")
    assert again.question() == moved
    assert again.field("spread").input_value() == "4"
    again.page.wait_for_function("() => document.querySelector('#pins').innerText.includes('exact\\texact')")
    assert first[1] in again.page.inner_text("#pins")
    again.close()


def test_copy_as_python_prints_the_same_numbers(opened, tmp_path):
    page = opened()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set("spread", 3.0)
    page.page.click("#python")
    page.page.wait_for_selector("body[data-script]")
    script = tmp_path / "again.py"
    script.write_text(page.page.evaluate("document.body.dataset.script"), encoding="utf-8")
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert all(number in printed for number in page.question())


def test_save_report_downloads_the_report(opened):
    page = opened()
    with page.page.expect_download() as download:
        page.page.click("#save")
    assert "<html" in Path(download.value.path()).read_text(encoding="utf-8")


def test_the_cursor_shows_the_posterior_of_every_output(opened):
    page = opened()
    cursor = page.page.locator("#cursor")
    cursor.focus()
    texts = set()
    for _ in range(5):
        cursor.press("ArrowRight")
        texts.add(page.page.inner_text("#cursor-text"))
    assert len(texts) == 5


def test_a_run_is_cancelled_and_errors_are_shown(opened):
    page = opened(BAD)
    page.field("kind").fill("3")
    page.field("kind").press("Enter")
    page.page.wait_for_selector("#cancel:not([hidden])")
    page.page.click("#cancel")
    page.settle()
    assert page.page.inner_text("#status") == "Cancelled."
    page.set("kind", 1)
    assert "no such thing" in page.page.inner_text("#banner")
    page.set("kind", 0)
    assert not page.page.is_visible("#banner")


def test_the_page_recovers_when_the_server_is_back(browser, tmp_path):
    path = tmp_path / "survey.py"
    path.write_text(SURVEY.replace("\n    ", "\n"), encoding="utf-8")
    running = Running(path)
    page = Page(browser, running.address)
    running.end(signal.SIGKILL)
    page.page.wait_for_selector("#banner:not([hidden])")
    assert "does not answer" in page.page.inner_text("#banner")
    again = Running(path, "--port", str(running.port))
    page.page.wait_for_selector("#banner", state="hidden", timeout=30_000)
    page.settle()
    page.set("spread", 3.5)
    assert page.question() == expected(3.5, 12.0)
    page.close()
    again.end()


HOSTILE = """
    import privug as pv

    name = "<img src=x onerror=alert(1)>"
    attack = pv.Attack(
        lambda x: x, {"x": pv.Choice([name, "b</script>"])}, "x",
        questions={"<b onclick=alert(2)>bold</b>": lambda x: x == name}, name="<svg onload=alert(3)>",
    )
"""


def test_hostile_names_stay_inert(opened):
    page = opened(HOSTILE)
    assert "<img src=x" in page.page.inner_text("#beliefs")
    assert page.page.locator("main img, main svg, main b").count() == 0
    assert page.problems == []


LONG = """
    import privug as pv

    share = pv.parameter("share", 0.1, 0.9, default=0.5)
    attack = pv.Attack(
        pv.mechanisms.discrete_laplace(lambda x, y: x + y, sensitivity=1, epsilon=1.0),
        {"x": pv.Bernoulli(share), "y": pv.Bernoulli(1 - share * share)}, "x", observe=pv.equals(1),
        questions={"x" * 300: lambda x: x == 1}, name="long",
    )
    other = pv.Attack(lambda x: x, {"x": pv.Choice(["y" * 300, "z"])}, "x", name="long")
"""


def test_numbers_that_follow_what_was_declared_are_shown(opened):
    page = opened(LONG, width=390)
    assert page.field("y: Bernoulli p").input_value() == "0.75"
    page.set("share", 0.6)
    assert page.field("y: Bernoulli p").input_value() == "0.64"
    assert page.page.locator("#attack option").all_inner_texts() == ["attack: long", "other: long"]
    assert "now: error" in page.page.inner_text("#tradeoff-text")
    page.page.select_option("#attack", "other")
    page.settle()
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.problems == []


def test_a_link_opened_in_the_same_tab_is_followed(opened):
    page = opened()
    page.set("spread", 3.5)
    link = page.page.evaluate("location.href")
    page.set("spread", 5.0)
    page.page.goto(link)
    page.settle()
    assert page.field("spread").input_value() == "3.5"
    assert page.question() == expected(3.5, 12.0)


def test_a_setting_is_pinned_with_its_own_numbers_while_a_run_goes_on(opened):
    page = opened()
    page.field("spread").fill("4")
    page.page.evaluate(
        "() => { const field = document.querySelector('[data-parameter=spread] input[type=number]');"
        " field.dispatchEvent(new Event('change')); document.getElementById('pin').click(); }"
    )
    page.settle()
    page.page.wait_for_function("() => document.querySelector('#pins').innerText.includes('exact\\texact')")
    numbers = re.search(r"P\(x is over 11\)\t(\S+)\t(\S+)", page.page.inner_text("#pins"))
    assert numbers is not None
    assert set(numbers.groups()) == {expected(4.0, 12.0)[1]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_fit(browser, path, width, scheme):
    running = Running(path)
    page = Page(browser, running.address, width=width, scheme=scheme)
    assert page.problems == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
    running.end()


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not there: npm install axe-core, or set PRIVUG_AXE")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, scheme):
    page = opened(scheme=scheme, width=390)
    page.page.click("#pin")
    page.page.wait_for_selector("#pins-card:not([hidden])")
    found = page.page.evaluate(AXE.read_text(encoding="utf-8") + "; axe.run()")
    assert [one["id"] for one in found["violations"] if one["impact"] in ("serious", "critical")] == []


def test_the_keyboard_is_enough(opened):
    page = opened()
    first = page.question()
    seen = set()
    for _ in range(60):
        page.page.keyboard.press("Tab")
        seen.add(page.page.evaluate("() => document.activeElement.id || document.activeElement.tagName"))
    assert {"attack", "pin", "python", "save", "cursor", "slider-0", "number-0"} <= seen
    page.page.focus("#slider-0")
    page.page.keyboard.press("End")
    page.settle()
    assert page.question() != first
    page.page.keyboard.press("Control+z")
    page.settle()
    assert page.question() == first
    page.page.focus("#pin")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#pins-card:not([hidden])")
