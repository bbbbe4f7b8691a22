"""A VNFD in several files: one for each flavour, with types and inputs of its own."""

from __future__ import annotations

from pathlib import Path

from tests.unit.package.csars import HEAD, META, VNFD, read

TOP = """\
tosca_definitions_version: tosca_simple_yaml_1_2
imports: [types.yaml, {file: df_a.yaml}, {b: {file: df_b.yaml}}, https://forge.example/etsi_nfv_sol001_vnfd_types.yaml]
topology_template:
  inputs:
    selected_flavour: {type: string, default: b}
    the_provider: {type: string, default: Company}
  node_templates:
    VNF:
      type: company.VNF
      properties:
        flavour_id: {get_input: selected_flavour}
        provider: {get_input: the_provider}
        product_name: Sample
        software_version: 1.20
"""
TYPES = """\
imports: [vnfd.yaml, types.yaml]
node_types:
  company.Base:
    derived_from: tosca.nodes.nfv.VNF
    properties:
      descriptor_id: {type: string, constraints: [{valid_values: [B1BB0CE7-ebca-4fa7-95ed-4840d70a1199]}]}
      descriptor_version: {type: string, default: 3.10}
  company.VNF: {derived_from: company.Base}
  company.Machine: {derived_from: tosca.nodes.nfv.Vdu.Compute}
"""
FLAVOUR = """\
imports: [types.yaml]
topology_template:
  substitution_mappings:
    node_type: company.VNF
    properties: {flavour_id: %s}
    requirements: {virtual_link_external: [cp, virtual_link]}
  node_templates:
    node: {type: company.Machine, properties: {name: node}}
    cp: {type: tosca.nodes.nfv.VduCp, requirements: [{virtual_binding: {node: node}}]}
    later: {type: tosca.nodes.nfv.VipCp}
    other: {type: vendor.nodes.Other}
"""


def _split_files() -> dict[str, bytes]:
    texts = {VNFD: TOP, "Definitions/types.yaml": TYPES, META: HEAD}
    texts |= {f"Definitions/df_{one}.yaml": FLAVOUR % one for one in "ab"}
    return {name: text.encode() for name, text in texts.items()}


def test_flavours_in_files_of_their_own(tmp_path: Path) -> None:
    package = read(_split_files(), tmp_path)
    descriptor = package.descriptor
    assert list(descriptor.flavours) == ["a", "b"]
    assert descriptor.default_flavour == "b"
    assert package.vnfd_paths[0] == VNFD
    assert descriptor.flavours["a"].connection_points["cp"].virtual_link is None


def test_a_single_flavour_may_be_named_by_the_entry_file(tmp_path: Path) -> None:
    files = _split_files()
    del files["Definitions/df_a.yaml"]
    files[VNFD] = files[VNFD].replace(b"{file: df_a.yaml}, ", b"")
    files["Definitions/df_b.yaml"] = files["Definitions/df_b.yaml"].replace(b"    properties: {flavour_id: b}\n", b"")
    assert list(read(files, tmp_path).descriptor.flavours) == ["b"]


def test_types_of_the_package_are_followed_to_the_standards_own(tmp_path: Path) -> None:
    descriptor = read(_split_files(), tmp_path).descriptor
    assert list(descriptor.flavours["a"].vdus) == ["node"]
    assert (descriptor.vnfd_id, descriptor.vnfd_version) == ("B1BB0CE7-ebca-4fa7-95ed-4840d70a1199", "3.10")


def test_inputs_are_replaced_by_their_defaults(tmp_path: Path) -> None:
    descriptor = read(_split_files(), tmp_path).descriptor
    assert (descriptor.provider, descriptor.software_version) == ("Company", "1.20")
