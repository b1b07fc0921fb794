"""The explorer: move what the attacker knows and sees, and watch what they learn."""

from privug.explorer.notebook import Explorer, explore, serve
from privug.explorer.parameters import Parameter, Variations, varied
from privug.explorer.sources import attack_at

__all__ = ["Explorer", "Parameter", "Variations", "attack_at", "explore", "serve", "varied"]


def __dir__() -> list[str]:
    return __all__
