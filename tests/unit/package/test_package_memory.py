"""Peak memory of the worst packages, measured in a process of their own.

By VmHWM, which begins at zero with the program; ru_maxrss would begin with what the test run itself had used.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.package.csars import VNFD, Raw, raw_members, raw_zip, valid_files, varied, zipped

MOST_KIB = 200 * 1024
MIB = 1024 * 1024

PROGRAM = """
import sys
from pathlib import Path
from slipway.model.errors import PackageError
from slipway.package.limits import PackageLimits
from slipway.package.reader import read_package
try:
    read_package(Path(sys.argv[1]), limits=PackageLimits(ratio=2000))
except PackageError as error:
    print(error.what[:300].replace(chr(10), " "))
else:
    print("read")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def _large_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in valid_files().items():
            archive.writestr(name, content)
        with archive.open("Files/large.img", "w", force_zip64=True) as member:
            for _ in range(600):
                member.write(bytes(MIB))


def _many_long_names(path: Path) -> None:
    names = [Raw(b"%06d/" % number + (b"d" * 30 + b"/") * 30 + b"f") for number in range(9_990)]
    path.write_bytes(raw_zip([*raw_members(valid_files()), *names]))


def _many_values(path: Path) -> None:
    path.write_bytes(zipped({**valid_files(), VNFD: b"a: [" + b"{a: b}," * 66_000 + b"]"}))


def _alias_bomb(path: Path) -> None:
    lines = ["a0: &a0 {x: [y, y, y, y, y, y, y, y]}"]
    lines += [f"a{n}: &a{n} {{" + ", ".join(f"k{k}: *a{n - 1}" for k in range(9)) + "}" for n in range(1, 20)]
    path.write_bytes(zipped({**valid_files(), VNFD: "\n".join(lines).encode()}))


def _long_texts(path: Path) -> None:
    text = "😀".encode() + b"x" * (2 * MIB)
    imports = "\n  - ".join(f"{number}.yaml" for number in range(3))
    files = varied("etsi_nfv_sol001_vnfd_types.yaml", imports)
    files |= {f"Definitions/{number}.yaml": b"a: " + text for number in range(3)}
    path.write_bytes(zipped(files))


def _levels_times_vdus(path: Path) -> None:
    """As many level counts as the bounds allow, in as many flavours."""
    levels = "".join(f"            l{n}: {{number_of_instances: 1}}\n" for n in range(50))
    nodes = "".join(f"    v{n}: {{type: tosca.nodes.nfv.Vdu.Compute}}\n" for n in range(290))
    targets = ", ".join(f"v{n}" for n in range(290))
    flavour = (
        "topology_template:\n  substitution_mappings: {{properties: {{flavour_id: f{number}}}}}\n"
        f"  node_templates:\n{nodes.replace('{', '{{').replace('}', '}}')}"
        "  policies:\n    - c:\n        type: tosca.policies.nfv.VduInstantiationLevels\n"
        f"        targets: [{targets}]\n        properties:\n          levels:\n"
        f"{levels.replace('{', '{{').replace('}', '}}')}"
    )
    imports = "\n  - ".join(f"f{number}.yaml" for number in range(95))
    files = varied("etsi_nfv_sol001_vnfd_types.yaml", imports)
    files |= {f"Definitions/f{number}.yaml": flavour.format(number=number).encode() for number in range(95)}
    path.write_bytes(zipped(files))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "outcome"),
    [
        (_large_member, "read"),
        (_many_long_names, "read"),
        (_many_values, "no flavour"),
        (_alias_bomb, "aliases spelled out"),
        (_long_texts, "read"),
        (_levels_times_vdus, "read"),
    ],
    ids=lambda one: one.__name__.strip("_") if callable(one) else "",
)
def test_peak_memory_stays_below_200_mb(write: Callable[[Path], None], outcome: str, tmp_path: Path) -> None:
    path = tmp_path / "package.csar"
    write(path)
    run = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, timeout=120, check=True)
    said, peak = run.stdout.splitlines()
    assert outcome in said
    assert int(peak) < MOST_KIB
