"""Where scripts run, and that nothing of them stays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.mgmt.script_runs import CANARY, left_in, open_files, processes_with


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where scripts get their directories. Nothing stays: no file, no process, no descriptor."""
    tmp_path_factory.getbasetemp()  # not in there
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o711)
        monkeypatch.setattr(tempfile, "tempdir", directory)
        files = open_files()
        umask = os.umask(0o077)  # as the server has it
        yield place
        os.umask(umask)
        assert left_in(place) == []
    assert open_files() <= files + 3  # the event loop has its own
    assert processes_with(CANARY) == []
