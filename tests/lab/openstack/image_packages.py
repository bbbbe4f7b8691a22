"""The small VNF with its software image as a file of the package, in several versions."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from random import Random

from slipway.vim.openstack.package_images import image_name

SMALL = Path(__file__).with_name("small_vnf")
FLAVOUR_FILE = "Definitions/small_df_simple.yaml"
TOP_FILE = "Definitions/small_top.vnfd.yaml"
VNFD_ID = "3d1f8a52-6c4e-4f0b-8b0d-2f7c9e51a6d4"
ARTIFACT = """      artifacts:
        sw_image:
          type: tosca.artifacts.nfv.SwImage
          file: ../Files/server.img
      capabilities:
        virtual_compute:
"""


def with_image_file(
    directory: Path, image: bytes, *, version: int = 1, base_hot: bool = True, size: str = "size-first"
) -> Path:
    """A source tree. Without BaseHOT its template is generated. `size`: the servers' flavor."""
    tree = directory / f"version-{version}"
    shutil.copytree(SMALL, tree)
    (tree / "Files").mkdir()
    (tree / "Files" / "server.img").write_bytes(image)
    flavour = (tree / FLAVOUR_FILE).read_text()
    assert "      capabilities:\n        virtual_compute:\n" in flavour
    flavour = flavour.replace("      capabilities:\n        virtual_compute:\n", ARTIFACT)
    flavour = flavour.replace("name: image-first", "name: server-image").replace("size-first", size)
    (tree / FLAVOUR_FILE).write_text(flavour)
    top = (tree / TOP_FILE).read_text()
    (tree / TOP_FILE).write_text(top.replace(VNFD_ID, vnfd_id(version)))
    if not base_hot:
        shutil.rmtree(tree / "BaseHOT")
        shutil.rmtree(tree / "UserData")
    return tree


def vnfd_id(version: int) -> str:
    return f"{VNFD_ID[:-1]}{version}"


def an_image(seed: int, size: int = 1 << 20) -> bytes:
    """Servers of the lab have a root file system of their own, whatever the image is."""
    return Random(seed).randbytes(size)


def name_of(image: bytes) -> str:
    return image_name(sha256(image).hexdigest())
