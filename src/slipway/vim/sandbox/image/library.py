"""Which images an engine has, and bringing in the one that machines are made from."""

from __future__ import annotations

from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.image.build import Say, build_image, cached_image, recipe
from slipway.vim.sandbox.locks import Locks
from slipway.vim.sandbox.machines import DEFAULT_IMAGE
from slipway.vim.sandbox.places import Places

RECIPE = "slipway.recipe"
BUILD_SECONDS = 1800.0  # so long somebody else may be at it


def image_name(name: str) -> str:
    """The engine's name for an image that the sandbox made: no registry is asked for `localhost`."""
    return f"localhost/slipway/{name}"


def is_current(engine: Engine) -> bool:
    """Whether the engine has the machine image, made in today's way."""
    return engine.image_labels(image_name(DEFAULT_IMAGE)).get(RECIPE) == recipe()


def ensure_image(engine: Engine, places: Places, locks: Locks, say: Say, *, anew: bool = False) -> bool:
    """Build and import what is missing, or all of it anew. Whether anything was done."""
    with locks.hold("the machine image", seconds=BUILD_SECONDS):
        file = cached_image(places.cache)
        if is_current(engine) and not anew:
            return False
        if anew or not file.exists():
            build_image(file, say)
        say(f"importing {file.stat().st_size >> 20} MB into the engine")
        engine.import_image(file, image_name(DEFAULT_IMAGE), {RECIPE: recipe()})
    return True
