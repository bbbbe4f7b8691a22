"""Packages made in memory: a small valid one to vary, and a ZIP writer that can be told to lie."""

from __future__ import annotations

import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slipway.package.reader import Package, read_package

META = "TOSCA-Metadata/TOSCA.meta"
VNFD = "Definitions/vnfd.yaml"
SCRIPT = "Scripts/install.sh"

HEAD = f"TOSCA-Meta-File-Version: 1.0\nCreated-by: test\nCSAR-Version: 1.1\nEntry-Definitions: {VNFD}\n"

VNFD_TEXT = """\
tosca_definitions_version: tosca_simple_yaml_1_2
imports:
  - etsi_nfv_sol001_vnfd_types.yaml
topology_template:
  substitution_mappings:
    node_type: company.provider.VNF
    properties:
      flavour_id: simple
  node_templates:
    VNF:
      type: company.provider.VNF
      properties:
        descriptor_id: b1bb0ce7-ebca-4fa7-95ed-4840d70a1177
        descriptor_version: 1.10
        provider: Company
        product_name: Sample
        software_version: '2.0'
        vnfm_info: [Slipway]
        flavour_description: small
      interfaces:
        Vnflcm:
          instantiate_end:
            implementation: installer
          scale_start: []
      artifacts:
        installer:
          type: tosca.artifacts.Implementation.Bash
          file: ../Scripts/install.sh
    worker:
      type: tosca.nodes.nfv.Vdu.Compute
      properties:
        name: worker
        vdu_profile:
          min_number_of_instances: 1
          max_number_of_instances: 5
      requirements:
        - virtual_storage: disk
    disk:
      type: tosca.nodes.nfv.Vdu.VirtualBlockStorage
      properties:
        virtual_block_storage_data:
          size_of_storage: 10 GB
    cp:
      type: tosca.nodes.nfv.VduCp
      properties:
        layer_protocols: [ipv4]
      requirements:
        - virtual_binding: worker
        - virtual_link: net
    net:
      type: tosca.nodes.nfv.VnfVirtualLink
      properties:
        vl_profile:
          virtual_link_protocol_data:
            - l3_protocol_data: {ip_version: ipv4, cidr: 10.0.0.0/24}
  groups:
    all_workers:
      type: tosca.groups.nfv.PlacementGroup
      members: [worker]
  policies:
    - aspects:
        type: tosca.policies.nfv.ScalingAspects
        properties:
          aspects:
            out:
              max_scale_level: 3
              step_deltas: [one]
    - initial:
        type: tosca.policies.nfv.VduInitialDelta
        properties:
          initial_delta: {number_of_instances: 1}
        targets: [worker]
    - deltas:
        type: tosca.policies.nfv.VduScalingAspectDeltas
        properties:
          aspect: out
          deltas:
            one: {number_of_instances: 1}
        targets: [worker]
    - levels:
        type: tosca.policies.nfv.InstantiationLevels
        properties:
          levels:
            small: {scale_info: {out: {scale_level: 0}}}
            big: {scale_info: {out: {scale_level: 2}}}
          default_level: small
    - counts:
        type: tosca.policies.nfv.VduInstantiationLevels
        properties:
          levels:
            small: {number_of_instances: 1}
            big: {number_of_instances: 3}
        targets: [worker]
    - apart:
        type: tosca.policies.nfv.AntiAffinityRule
        properties: {scope: zone}
        targets: [all_workers]
"""


def block(name: str, content: bytes, algorithm: str = "SHA-256") -> str:
    digest = hashlib.new(algorithm.replace("-", ""), content).hexdigest()
    return f"\nName: {name}\nContent-Type: text/plain\nAlgorithm: {algorithm}\nHash: {digest}\n"


def valid_files(vnfd: str = VNFD_TEXT) -> dict[str, bytes]:
    script = b"#!/bin/sh\necho installed\n"
    return {META: (HEAD + block(SCRIPT, script)).encode(), VNFD: vnfd.encode(), SCRIPT: script}


def varied(old: str, new: str) -> dict[str, bytes]:
    """The valid package with its VNFD changed in one place."""
    assert VNFD_TEXT.count(old) == 1, old
    return valid_files(VNFD_TEXT.replace(old, new))


def zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def written(files: Mapping[str, bytes] | bytes, folder: Path, name: str = "package.csar") -> Path:
    path = folder / name
    path.write_bytes(files if isinstance(files, bytes) else zipped(files))
    return path


def read(files: Mapping[str, bytes] | bytes, folder: Path) -> Package:
    return read_package(written(files, folder))


@dataclass
class Raw:
    """A member as it shall be written; None means the truth."""

    name: bytes
    data: bytes = b""
    method: int = 0
    flags: int = 0
    mode: int = 0o100644
    size: int | None = None
    packed: int | None = None
    crc: int | None = None
    extra: bytes = b""
    local_name: bytes | None = None
    local_size: int | None = None
    offset: int | None = None
    before: bytes = b""
    disk: int = 0


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def raw_zip(
    members: Sequence[Raw], *, prefix: bytes = b"", comment: bytes = b"", disk: int = 0, count: int | None = None
) -> bytes:
    """A ZIP with whatever its members claim."""
    body, directory = bytearray(prefix), bytearray()
    for member in members:
        inflated = zlib.decompress(member.data, -15) if member.method == 8 and member.size is None else member.data
        size = len(inflated) if member.size is None else member.size
        crc = zlib.crc32(inflated) if member.crc is None else member.crc
        packed = len(member.data) if member.packed is None else member.packed
        body += member.before
        offset = len(body) if member.offset is None else member.offset
        local_name = member.name if member.local_name is None else member.local_name
        local_size = size if member.local_size is None else member.local_size
        if member.offset is None:
            body += struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, member.flags, member.method, 0, 33, crc, packed,
                                local_size, len(local_name), len(member.extra))  # fmt: skip
            body += local_name + member.extra + member.data
        directory += struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 0x0314, 20, member.flags, member.method, 0, 33, crc,
                                 packed, size, len(member.name), len(member.extra), 0, member.disk, 0,
                                 member.mode << 16, offset)  # fmt: skip
        directory += member.name + member.extra
    total = len(members) if count is None else count
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", disk, disk, total, total, len(directory), len(body), len(comment))
    return bytes(body + directory + end + comment)


def raw_members(files: Mapping[str, bytes]) -> list[Raw]:
    return [Raw(name.encode(), content) for name, content in files.items()]


def with_member(member: Raw) -> bytes:
    """The valid package and one more member."""
    return raw_zip([*raw_members(valid_files()), member])
