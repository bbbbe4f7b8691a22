"""Kubernetes' release files: taken when they are what their checksums say, refused when not, built when not there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slipway.model.errors import VimError, VimFault
from slipway.vim.sandbox.image.kubernetes.download import NAMES, Site
from slipway.vim.sandbox.image.kubernetes.program_cache import ProgramCache
from slipway.vim.sandbox.image.kubernetes.programs import SERVERS, Program
from slipway.vim.sandbox.image.kubernetes.versions import DEFAULT, RELEASES

RELEASE = RELEASES[DEFAULT]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


class PaperWorkshop(ProgramCache):
    """Writes down what it should build."""

    def built(self, program: Program) -> Path:
        path = self._place(program)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(program.title)
        return path


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The directory of the release on the site, with all its files."""
    directory = tmp_path / "site" / f"v{DEFAULT}" / "bin" / "linux" / "amd64"
    directory.mkdir(parents=True)
    for name in NAMES:
        (directory / name).write_text(f"I am {name}")
        (directory / f"{name}.sha256").write_text(sha256(f"I am {name}".encode()).hexdigest())
    return directory


@pytest.fixture
def url(tmp_path: Path, published: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "site"))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def message_of() -> list[str]:
    return []


def program_cache(tmp_path: Path, url: str, said: list[str]) -> ProgramCache:
    return PaperWorkshop(tmp_path / "cache", said.append, Site(url, said.append))


def test_files_that_match_their_checksums_are_taken_once(tmp_path: Path, url: str, said: list[str]) -> None:
    found = program_cache(tmp_path, url, said).kubernetes(RELEASE)
    assert {name: path.read_text() for name, path in found.files.items()} == {name: f"I am {name}" for name in NAMES}
    assert all(path.stat().st_mode & 0o777 == 0o755 for path in found.files.values())
    assert found.one_server is None
    assert len(said) == len(NAMES)
    assert program_cache(tmp_path, url, said).kubernetes(RELEASE) == found
    assert len(said) == len(NAMES)


def test_a_file_that_does_not_match_is_refused_and_not_kept(
    tmp_path: Path, published: Path, url: str, said: list[str]
) -> None:
    (published / "kubelet").write_text("I am somebody else")
    with pytest.raises(VimError, match=r"kubelet is not what its checksum says.*--releases none") as refused:
        program_cache(tmp_path, url, said).kubernetes(RELEASE)
    assert refused.value.fault is VimFault.PERMANENT
    kept = {path.name for path in (tmp_path / "cache" / "releases" / DEFAULT).iterdir()}
    assert kept == set(NAMES[: NAMES.index("kubelet")])


@pytest.mark.parametrize("missing", ["kubeadm", "kube-apiserver.sha256"])
def test_a_release_that_is_not_whole_is_built(
    tmp_path: Path, published: Path, url: str, said: list[str], missing: str
) -> None:
    (published / missing).unlink()
    found = program_cache(tmp_path, url, said).kubernetes(RELEASE)
    assert found.one_server is not None
    assert found.files["kubeadm"].read_text() == f"kubeadm {DEFAULT}"
    assert "404" in said[-1]
    assert "building from Go modules instead" in said[-1]


def test_a_silent_site_is_asked_once_and_all_is_built(tmp_path: Path, said: list[str]) -> None:
    made = program_cache(tmp_path, "http://127.0.0.1:1/release", said)
    for release in RELEASES.values():
        assert made.kubernetes(release).one_server is not None
    assert len(said) == 1
    assert said[0].startswith("no release files of Kubernetes from http://127.0.0.1:1/release")


def test_what_was_built_before_is_not_asked_for(tmp_path: Path, url: str, said: list[str]) -> None:
    alone = PaperWorkshop(tmp_path / "cache", said.append)
    first = alone.kubernetes(RELEASE)
    assert {first.files[name] for name in SERVERS} == {first.one_server}
    assert program_cache(tmp_path, url, said).kubernetes(RELEASE) == first
    assert said == []
