from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from slipway.model.action import VimConnection
from slipway.model.vim import SIMULATED
from slipway.simulator.vim.driver import SimulatedDriver

VIM = VimConnection(SIMULATED, {"endpoint": "sim://old"}, {}, {})


async def test_a_file_from_before_images_were_noted_is_read_and_written_on(tmp_path: Path) -> None:
    driver = SimulatedDriver(tmp_path)
    await driver.register(VIM)
    driver.close()
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        db.execute("ALTER TABLE machine DROP COLUMN image")
        db.execute("ALTER TABLE machine DROP COLUMN flavour")
        db.execute("INSERT INTO machine VALUES ('m', 'i', 'o', 'r', 'worker-0', 'worker', 'z', 0)")
        db.commit()
    (machine,) = (await driver.find(VIM, "i")).machines
    assert (machine.zone, machine.image, machine.flavour) == ("z", None, None)
    driver.close()
