"""Which images an engine has, and bringing in those that machines are made from."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.image import recipes
from slipway.vim.sandbox.image.build import build_image, cached_image
from slipway.vim.sandbox.image.kubernetes.download import SITE, Site
from slipway.vim.sandbox.image.kubernetes.payload import payload
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.versions import RELEASES, Release, releases
from slipway.vim.sandbox.image.process import Say
from slipway.vim.sandbox.image.recipes import Recipe
from slipway.vim.sandbox.locks import Locks
from slipway.vim.sandbox.machines import DEFAULT_IMAGE
from slipway.vim.sandbox.paths import SandboxPaths

RECIPE = "slipway.recipe"
VERSIONS = "slipway.kubernetes"
BUILD_SECONDS = 1800.0  # how long another process may take to build it
KUBERNETES_BUILD_SECONDS = 4 * 3600.0
IMPORT_SECONDS = 200.0  # a step that wants the image waits so long for another process that imports it
MACHINE_LOCK, KUBERNETES_LOCK = "the machine image", "the Kubernetes image"
MADE = tuple(f"`{name}` (slipway sandbox image build {name})" for name in recipes.NAMES)


def image_name(name: str) -> str:
    """The engine's name for an image that the sandbox made: no registry is asked for `localhost`."""
    return f"localhost/slipway/{name}"


def is_current(engine: Engine) -> bool:
    """Whether the engine has the machine image, made in today's way."""
    return engine.image_labels(image_name(DEFAULT_IMAGE)).get(RECIPE) == recipes.machine().digest


def kubernetes_in(engine: Engine) -> tuple[Release, ...]:
    """The releases in the engine's Kubernetes image; none if it was not made in today's way."""
    labels = engine.image_labels(image_name(recipes.KUBERNETES))
    found = tuple(RELEASES[one] for one in labels.get(VERSIONS, "").split(",") if one in RELEASES)
    return found if found and labels.get(RECIPE) == recipes.kubernetes(found).digest else ()


def ensure_image(engine: Engine, paths: SandboxPaths, locks: Locks, say: Say, *, anew: bool = False) -> bool:
    """Build and import the machine image, if it is missing or all of it anew. Whether anything was done."""
    with locks.hold(MACHINE_LOCK, seconds=BUILD_SECONDS):
        if is_current(engine) and not anew:
            return False
        _bring(engine, paths, recipes.machine(), say, None, anew=anew)
    return True


def ensure_kubernetes(
    engine: Engine,
    paths: SandboxPaths,
    locks: Locks,
    say: Say,
    versions: Iterable[str] = (),
    *,
    anew: bool = False,
    site: str | None = SITE,
) -> bool:
    """The same for the Kubernetes image. One that has the wanted versions and others will do.

    Programs that are not in the cache are asked for at the site, if there is one, and else built.
    """
    wanted = releases(versions)
    with locks.hold(KUBERNETES_LOCK, seconds=KUBERNETES_BUILD_SECONDS):
        if set(wanted) <= set(kubernetes_in(engine)) and not anew:
            return False
        program_cache = ProgramCache(paths.cache / "kubernetes", say, Site(site, say) if site else None)
        _bring(engine, paths, recipes.kubernetes(wanted), say, program_cache, anew=anew)
    return True


def find_image(engine: Engine, paths: SandboxPaths, locks: Locks, asked: str) -> str:
    """The engine's name for an image: one that the sandbox made, or one that a user imported.

    What lies in the cache is imported first. VimError names the command that makes one that does not.
    """
    for name in (image_name(asked), asked):
        if engine.has_image(name):
            return name
    if asked in recipes.NAMES and _import_cached(engine, paths, locks, asked):
        return image_name(asked)
    known = asked in recipes.NAMES
    cure = paths.build_command(asked) if known else f"name one of those that are there, or {' or '.join(MADE)}"
    raise VimError(f"There is no image {asked}, neither in the engine nor in {paths.cache}.", VimFault.PERMANENT,
                   cure=cure)  # fmt: skip


def _import_cached(engine: Engine, paths: SandboxPaths, locks: Locks, name: str) -> bool:
    """Whether it is in the engine now. Several machines may want it at once, and one of them brings it."""
    lock = MACHINE_LOCK if name == recipes.MACHINE else KUBERNETES_LOCK
    with locks.hold(lock, seconds=IMPORT_SECONDS):
        if engine.has_image(image_name(name)):
            return True
        recipe = cached_recipe(paths.cache, name)
        if recipe is None:
            return False
        _import(engine, paths, recipe, lambda said: None)
    return True


def cached_recipe(cache: Path, name: str) -> Recipe | None:
    """How the image in the cache was made, if that is today's way; the one with most versions, of several."""
    there = [one for one in _recipes_in(cache, name) if cached_image(cache, one).exists()]
    return max(there, key=lambda one: len(one.releases), default=None)


def _recipes_in(cache: Path, name: str) -> Iterator[Recipe]:
    if name == recipes.MACHINE:
        yield recipes.machine()
        return
    for file in sorted((cache / "images").glob(f"{name}-*-{recipes.SUITE}-*.tar")):
        versions = file.name.removeprefix(f"{name}-").partition(f"-{recipes.SUITE}-")[0].split("-")
        if RELEASES.keys() >= set(versions):
            yield recipes.kubernetes(releases(versions))


@contextmanager
def usual_modes() -> Iterator[None]:
    """What is made goes into an image that others than its maker must read."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def _bring(
    engine: Engine, paths: SandboxPaths, recipe: Recipe, say: Say, program_cache: ProgramCache | None, *, anew: bool
) -> None:
    file = cached_image(paths.cache, recipe)
    if anew or not file.exists():
        try:
            with usual_modes(), ExitStack() as stack:
                more = None
                if program_cache:
                    more = stack.enter_context(payload(paths.cache / "kubernetes", recipe.releases, program_cache, say))
                say(f"making the {recipe.name} image from Debian's packages")
                build_image(recipe, file, say, more)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise VimError(f"The disk of {paths.cache} is full.", VimFault.QUOTA,
                           cure="free some room, or set XDG_CACHE_HOME.") from None  # fmt: skip
    _import(engine, paths, recipe, say)


def _import(engine: Engine, paths: SandboxPaths, recipe: Recipe, say: Say) -> None:
    file = cached_image(paths.cache, recipe)
    say(f"importing {file.stat().st_size >> 20} MB into the engine")
    versions = {VERSIONS: ",".join(one.version for one in recipe.releases)} if recipe.releases else {}
    try:
        engine.import_image(file, image_name(recipe.name), {RECIPE: recipe.digest, **versions})
    finally:
        for left in paths.scratch.glob("api_load.tar*"):
            left.unlink(missing_ok=True)
    engine.remove_nameless_images()
