"""An image that was made once is brought into whichever engine wants it; one that was not names the very command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.engine import Engine
from slipway.vim.sandbox.image import recipes
from slipway.vim.sandbox.image.build import cached_image
from slipway.vim.sandbox.image.engine_images import find_image, kubernetes_in
from slipway.vim.sandbox.image.kubernetes.versions import releases
from slipway.vim.sandbox.locks import Locks
from slipway.vim.sandbox.paths import SandboxPaths


class EmptyEngine(Engine):
    """Has no image before it is given one."""

    def __init__(self, *there: str) -> None:
        super().__init__("unix:///nowhere")
        self.there: dict[str, Mapping[str, str]] = {name: {} for name in there}
        self.imported: list[str] = []

    def has_image(self, image: str) -> bool:
        return image in self.there

    def image_labels(self, image: str) -> dict[str, str]:
        return dict(self.there.get(image, {}))

    def import_image(self, file: Path, image: str, labels: Mapping[str, str]) -> None:
        self.there[image] = labels
        self.imported.append(file.name)

    def remove_nameless_images(self) -> None:
        pass


@pytest.fixture
def paths(tmp_path: Path) -> SandboxPaths:
    return SandboxPaths(tmp_path / "my data" / "sandbox", tmp_path / "cache")


@pytest.fixture
def locks(tmp_path: Path) -> Locks:
    return Locks(tmp_path / "locks")


def made(paths: SandboxPaths, recipe: recipes.Recipe) -> str:
    file = cached_image(paths.cache, recipe)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"an image")
    return file.name


def test_an_image_in_the_cache_is_imported_when_it_is_wanted(paths: SandboxPaths, locks: Locks) -> None:
    plain, clusters = made(paths, recipes.machine()), made(paths, recipes.kubernetes(releases(())))
    engine = EmptyEngine()
    assert find_image(engine, paths, locks, "kubernetes") == "localhost/slipway/kubernetes"
    assert find_image(engine, paths, locks, "machine") == "localhost/slipway/machine"
    assert find_image(engine, paths, locks, "kubernetes") == "localhost/slipway/kubernetes"
    assert engine.imported == [clusters, plain]
    assert kubernetes_in(engine) == releases(())


def test_of_several_the_one_with_most_versions_is_imported(paths: SandboxPaths, locks: Locks) -> None:
    made(paths, recipes.kubernetes(releases(("1.34.4",))))
    both = made(paths, recipes.kubernetes(releases(("1.33.13", "1.34.4"))))
    engine = EmptyEngine()
    find_image(engine, paths, locks, "kubernetes")
    assert engine.imported == [both]


def test_an_image_that_somebody_brought_is_taken_as_it_is(paths: SandboxPaths, locks: Locks) -> None:
    made(paths, recipes.machine())
    engine = EmptyEngine("docker.io/library/debian", "localhost/slipway/machine")
    assert find_image(engine, paths, locks, "docker.io/library/debian") == "docker.io/library/debian"
    assert find_image(engine, paths, locks, "machine") == "localhost/slipway/machine"
    assert engine.imported == []


def test_one_that_was_made_in_another_way_is_not_imported(paths: SandboxPaths, locks: Locks) -> None:
    file = cached_image(paths.cache, recipes.kubernetes(releases(())))
    file.parent.mkdir(parents=True)
    file.with_name("kubernetes-1.34.4-bookworm-000000000000.tar").write_bytes(b"old")
    file.with_name("kubernetes-9.9.9-bookworm-000000000000.tar").write_bytes(b"from the future")
    with pytest.raises(VimError):
        find_image(EmptyEngine(), paths, locks, "kubernetes")


@pytest.mark.parametrize("name", ["machine", "kubernetes"])
def test_one_that_is_nowhere_names_the_command_that_makes_it(paths: SandboxPaths, locks: Locks, name: str) -> None:
    with pytest.raises(VimError) as refused:
        find_image(EmptyEngine(), paths, locks, name)
    assert refused.value.fault is VimFault.PERMANENT
    assert f"slipway sandbox image build {name} --data-dir '{paths.directory.parent}'" in refused.value.detail


def test_a_sandbox_at_a_place_of_its_own_is_named_by_its_setting(tmp_path: Path, locks: Locks) -> None:
    paths = SandboxPaths(tmp_path / "engine", tmp_path / "cache")
    with pytest.raises(VimError) as refused:
        find_image(EmptyEngine(), paths, locks, "kubernetes")
    assert f"SLIPWAY_SANDBOX_DIR={paths.directory} slipway sandbox image build kubernetes" in refused.value.detail


def test_an_unknown_image_says_which_can_be_made(paths: SandboxPaths, locks: Locks) -> None:
    with pytest.raises(VimError, match=r"no image windows.*slipway sandbox image build"):
        find_image(EmptyEngine(), paths, locks, "windows")
