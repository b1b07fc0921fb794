"""Pages that name code: messages that are quoted, files and types that are named exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import privug

ROOT = Path(privug.__file__).parent
DOCS = Path(__file__).parent.parent / "docs"
SPANS = re.compile(r"`([^`]+)`")


@cache
def sources() -> dict[str, str]:
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}


@cache
def said() -> str:
    """Return every text that the code can say, a line each; what is put into it is left out."""
    constants = (node for text in sources().values() for node in ast.walk(ast.parse(text)))
    found = []
    for node in constants:
        if isinstance(node, ast.JoinedStr):
            found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return "\n".join(found) + (DOCS.parent / "Makefile").read_text(encoding="utf-8")


def quoted() -> list[str]:
    lines = (DOCS / "how-to" / "troubleshooting.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("| ") and not line.startswith("| message")]
    return [message for cell in cells for message in SPANS.findall(cell)]


@pytest.mark.parametrize("message", quoted())
def test_messages_of_the_troubleshooting_page_are_those_of_the_code(message):
    fragments = [part.strip() for part in re.split(r"\.\.\.|\*\w+\*", message) if part.strip(" ():,")]
    assert fragments
    for fragment in fragments:
        assert fragment in said() or re.search(rf"\bclass {re.escape(fragment)}\b", "\n".join(sources().values()))


@pytest.mark.parametrize("page", ["architecture.md", "internals.md"])
def test_files_and_types_of_pages_for_developers_exist(page):
    text = (DOCS / "explanation" / page).read_text(encoding="utf-8")
    whole, files = "\n".join(sources().values()), [name.removesuffix(".py") for name in sources()]
    missing = []
    for span in SPANS.findall(text):
        name = span.removesuffix(".py").rstrip("/")
        if re.fullmatch(r"[a-z_]+(/[a-z_0-9]+)+", name) and not name.startswith(("src/", "tests/", "docs/")):
            known = any(f"/{file}/".find(f"/{name}/") >= 0 for file in files)
        elif re.fullmatch(r"[A-Z][a-z]+[A-Za-z]*", name):
            known = re.search(rf"\b{name}\b", whole) is not None
        else:
            continue
        missing += [] if known else [span]
    assert missing == []
