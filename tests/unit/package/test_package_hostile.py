"""Every hostile package is refused with its reason, and leaves nothing behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from slipway.model.errors import PackageError
from slipway.package.reader import read_package
from tests.unit.package.csars import written
from tests.unit.package.hostile_archives import ARCHIVES, NAMES
from tests.unit.package.hostile_documents import METAS, VNFDS, YAMLS

HOSTILE = {**NAMES, **ARCHIVES, **YAMLS, **METAS, **VNFDS}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_package_is_refused_with_its_reason(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(temporary)
    builder, reason = HOSTILE[case]
    path = written(builder(), tmp_path)
    before = _tree(tmp_path)

    with pytest.raises(PackageError) as refused:
        read_package(path)

    assert reason in refused.value.what
    assert refused.value.cure
    assert refused.value.file is not None
    assert refused.value.detail.isprintable()
    assert _tree(tmp_path) == before


def test_the_corpus_is_large_enough() -> None:
    assert len(HOSTILE) >= 100


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}
