"""What the README shows, for the tests that hold it to its word."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
VARYING = [
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"\b\d+\.\d+\.\d+\.\d+(:\d+)?", "ADDRESS"),
    (r"kill -9 \d+", "kill -9 PID"),
    (r"(node-\d+)-[0-9a-f]{10}", r"\1-DIGEST"),
    (r"web-[0-9a-z]+-[0-9a-z]{5}", "web-POD"),
    (r"\b\d+\.\d s\b", "TIME"),
    (r"\b(\d+m)?\d+s\b", "AGE"),
    (r"\d{4}-\d\d-\d\d(T[\d:]+Z)?", "DATE"),
    (r"attempt \d+", "ATTEMPT"),
    (r" +", " "),
]


def block_after(comment: str) -> list[str]:
    found = re.search(rf"<!-- {comment}:.*?-->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert found, f"the README has no block marked {comment!r}"
    return found.group(1).splitlines()


def same(line: str) -> str:
    """Without what differs from run to run."""
    for pattern, word in VARYING:
        line = re.sub(pattern, word, line)
    return line.strip()
