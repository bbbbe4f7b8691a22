"""A machine's own cgroups go with it, whatever other machines of the host do meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slipway.vim.sandbox.cgroups import remove_cgroups


@pytest.fixture
def hybrid(tmp_path: Path) -> Path:
    (tmp_path / "unified").mkdir()
    (tmp_path / "memory" / "machines" / "other" / "kubepods").mkdir(parents=True)
    return tmp_path


@contextmanager
def coming_and_going(parent: Path) -> Iterator[None]:
    over = threading.Event()

    def churn() -> None:
        while not over.is_set():
            for number in range(20):
                (parent / f"pod{number}" / "container").mkdir(parents=True)
            for number in range(20):
                (parent / f"pod{number}" / "container").rmdir()
                (parent / f"pod{number}").rmdir()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_machine_takes_all_of_its_own_and_nothing_else(hybrid: Path) -> None:
    for hierarchy in ("memory/machines", "pids", "unified"):
        (hybrid / hierarchy / "mine" / "kubepods" / "pod").mkdir(parents=True)
    remove_cgroups("mine", hybrid)
    assert sorted(str(path.relative_to(hybrid)) for path in hybrid.glob("**/mine")) == ["unified/mine"]
    assert (hybrid / "memory" / "machines" / "other" / "kubepods").is_dir()


def test_cgroups_of_other_machines_that_vanish_meanwhile_do_no_harm(hybrid: Path) -> None:
    own = hybrid / "memory" / "machines" / "mine"
    with coming_and_going(hybrid / "memory" / "machines" / "other" / "kubepods"):
        for _ in range(200):
            (own / "kubepods").mkdir(parents=True)
            remove_cgroups("mine", hybrid)
            assert not own.exists()
