"""An extension for mkdocstrings: examples in docstrings are shown as code."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Examples(griffe.Extension):
    """Put examples between fences; a blank line ends one, as it does for doctest."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(
                r"```pycon\n\g<0>\n```", obj.docstring.value
            )
