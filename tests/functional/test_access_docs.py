"""docs/access.md shows commands with their answers. They are run here, and answer so."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.functional.processes import SLIPWAY, running

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
VARYING = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
    (r" +", " "),
]


def same(line: str) -> str:
    for pattern, word in VARYING:
        line = re.sub(pattern, word, line)
    return line.strip()


def shown() -> list[tuple[str, list[str]]]:
    """Each command of the page that is to be run, and the lines of its answer."""
    found = re.search(r"<!-- tokens:.*?-->\n```console\n(.*?)```", PAGE, re.DOTALL)
    assert found
    commands = re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", found[1], re.MULTILINE)
    return [(command, answer.splitlines()) for command, answer in commands]


def test_the_commands_of_the_page_answer_as_it_says(tmp_path: Path) -> None:
    with running("serve", tmp_path / "data") as process:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY_")}
        environment |= {
            "PATH": f"{Path(SLIPWAY).parent}:{environment['PATH']}",
            "SLIPWAY_URL": process.first_line.split(" ready at ")[1].split(" ")[0],
            "SLIPWAY_DATA_DIR": str(process.data_dir),
        }
        assert len(shown()) == 6
        for command, answer in shown():
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert list(map(same, (done.stdout + done.stderr).splitlines())) == list(map(same, answer)), command
    assert len((tmp_path / "ci.token").read_text().strip()) >= 43
