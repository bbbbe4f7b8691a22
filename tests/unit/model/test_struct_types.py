"""Types that are built before there are threads can be used by many at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A family of nested types, decoded by threads that change as often as they can: without the call, 30 of 30 died.
DECODED_BY_THREADS = """
import sys, threading
import msgspec
from slipway.model.struct_types import build_struct_types

def family(number, depth=6):
    made = int
    for level in range(depth):
        made = msgspec.defstruct(f"S{number}_{level}", [("a", made), ("b", int, 0), ("d", dict[str, int], {})])
    return made

families = [family(number) for number in range(200)]
build_struct_types()
sys.setswitchinterval(1e-6)
document = b'{"a":' * 6 + b"1" + b"}" * 6
for made in families:
    together = threading.Barrier(4)
    threads = [
        threading.Thread(target=lambda: (together.wait(), msgspec.json.decode(document, type=made))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("all decoded")
"""


@pytest.mark.slow
def test_threads_that_decode_a_type_for_the_first_time_at_once_end_no_process() -> None:
    ended = subprocess.run([sys.executable, "-c", DECODED_BY_THREADS], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "all decoded"), ended.stderr[-500:]
