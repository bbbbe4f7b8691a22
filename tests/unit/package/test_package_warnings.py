"""Contradictions in a VNFD that harm nothing: the package is read, and says what it ignored and how to correct it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from slipway.lcm.operations import OPERATIONS
from slipway.model.descriptor import Descriptor, Flavour
from slipway.model.errors import PackageError
from slipway.model.hooks import HOOKED_OPERATIONS
from slipway.package.build import build_package
from slipway.package.warnings import LONGEST_TEXT, MOST_WARNINGS, Warnings
from tests.unit.package.csars import VNFD_TEXT, read, valid_files, varied

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "packages.md").read_text()
SAMPLES = sorted(path.name for path in (ROOT / "samples").iterdir() if path.is_dir())
OTHER = "Definitions/other.yaml"
# What a command of the sample puts into it.
PUT_INTO = {"management-cluster": ("core.yaml", "bootstrap.yaml", "control-plane.yaml", "infrastructure.yaml")}


def _with_file(text: str, vnfd: str = VNFD_TEXT) -> dict[str, bytes]:
    files = valid_files(vnfd.replace("etsi_nfv_sol001_vnfd_types.yaml", "other.yaml"))
    return {**files, OTHER: text.encode()}


_FLAVOUR_LARGE = """\
topology_template:
  substitution_mappings: {properties: {flavour_id: large}}
  node_templates:
    worker: {type: tosca.nodes.nfv.Vdu.Compute}
"""
_TOP_FILE = (
    "\n".join(VNFD_TEXT.splitlines()[:21])
    .replace("vnfm_info: [Slipway]", "flavour_id: tiny")
    .replace(
        "  substitution_mappings:\n    node_type: company.provider.VNF\n    properties:\n      flavour_id: simple\n", ""
    )
)
_FLAVOUR_FILE = """\
topology_template:
  node_templates:
    worker: {type: tosca.nodes.nfv.Vdu.Compute}
"""

Check = Callable[[Descriptor, Flavour], bool]
CASES: dict[str, tuple[dict[str, bytes], str, Check]] = {
    "a scaling policy for an aspect that is not declared": (
        varied("aspect: out", "aspect: sideways"),
        "Definitions/vnfd.yaml:76: The policy 'deltas' is for the scaling aspect 'sideways', which is not declared: it"
        " is ignored. Cure: remove it, or name one of: out.",
        lambda _, flavour: flavour.members("worker", {"out": 2}) == 1,
    ),
    "a scaling policy where no aspect is declared": (
        varied("type: tosca.policies.nfv.ScalingAspects", "type: tosca.policies.nfv.Other"),
        "which is not declared: it is ignored. Cure: remove it, or declare what it names.",
        lambda _, flavour: not flavour.aspects and not flavour.levels["big"].scale,
    ),
    "deltas for steps that the aspect does not have": (
        varied("one: {number", "two: {number"),
        "Definitions/vnfd.yaml:77: The policy 'deltas' has deltas for steps that aspect 'out' does not have (two): it"
        " is ignored, and 'out' does not scale its VDUs. Cure: remove it, or name one of: one.",
        lambda _, flavour: flavour.members("worker", {"out": 2}) == 1,
    ),
    "a delta too many": (
        varied("one: {number_of_instances: 1}", "one: {number_of_instances: 1}\n            two: {}"),
        "(two): those are ignored. Cure: remove it, or name one of: one.",
        lambda _, flavour: flavour.members("worker", {"out": 2}) == 3,
    ),
    "a level of an aspect that is not declared": (
        varied("big: {scale_info: {out:", "big: {scale_info: {up: {scale_level: 9}, out:"),
        "Definitions/vnfd.yaml:85: The level 'big' sets scaling aspects that are not declared (up): those are ignored."
        " Cure: remove it, or name one of: out.",
        lambda _, flavour: flavour.levels["big"].scale == {"out": 2},
    ),
    "a number for a level that is not declared": (
        varied("big: {number", "huge: {number"),
        "Definitions/vnfd.yaml:92: The policy 'counts' is for levels that are not declared (huge): those are ignored."
        " Cure: remove it, or name one of: small, big.",
        lambda _, flavour: list(flavour.levels) == ["small", "big"] and not flavour.levels["big"].counts,
    ),
    "a policy for a VDU that is not declared": (
        varied(
            "{number_of_instances: 1}\n        targets: [worker]\n    - deltas",
            "{number_of_instances: 1}\n        targets: [worker, nobody]\n    - deltas",
        ),
        "Definitions/vnfd.yaml:72: The policy 'initial' has targets that are not declared (nobody): those are ignored."
        " Cure: remove it, or name one of: worker.",
        lambda _, flavour: flavour.vdus["worker"].initial == 1,
    ),
    "an affinity rule for what is not declared": (
        varied("[all_workers]", "[all_workers, nobody]"),
        "The policy 'apart' has targets that are not declared (nobody): those are ignored.",
        lambda _, flavour: flavour.placement[0].targets == ("worker",),
    ),
    "a placement group with a member that is not declared": (
        varied("members: [worker]", "members: [worker, nobody]"),
        "The policy 'apart' has targets that are not declared (nobody): those are ignored.",
        lambda _, flavour: flavour.placement[0].targets == ("worker",),
    ),
    "a hook that is never run": (
        varied("scale_start: []", "instantiate: {implementation: installer}"),
        "Definitions/vnfd.yaml:24: The hook 'instantiate' names 'installer', but is never run: it is ignored."
        " Cure: remove it, or name an operation of Slipway and its _start or _end, such as instantiate_end.",
        lambda _, flavour: list(flavour.hooks) == ["instantiate_end"],
    ),
    "a flavour file without flavour_id where the entry file has one": (
        _with_file(_FLAVOUR_FILE, _TOP_FILE),
        "Definitions/other.yaml:2: This file describes a flavour, but gives no flavour_id: 'tiny' is taken, which the"
        " entry file falls back to. Cure: set substitution_mappings.properties.flavour_id.",
        lambda descriptor, _: descriptor.default_flavour == "tiny",
    ),
    "an entry file that falls back to a flavour that is not there": (
        _with_file(_FLAVOUR_LARGE, _TOP_FILE),
        "The entry file falls back to the flavour 'tiny', which is not described: that is ignored."
        " Cure: let flavour_id, or its default, be one of: large.",
        lambda descriptor, _: descriptor.default_flavour == "large",
    ),
    "constraints that nothing is done about": (
        varied("        name: worker\n", "        name: worker\n        nfvi_constraints: {numa: one}\n"),
        "Definitions/vnfd.yaml:33: VDU 'worker' has nfvi_constraints: nothing is done about them. Cure: ask for a",
        lambda _, flavour: "worker" in flavour.vdus,
    ),
    "a boot order with what is no storage": (
        varied("        name: worker\n", "        name: worker\n        boot_order: [disk, nobody]\n"),
        "boot_order of VDU 'worker' names what is no storage of it (nobody): that is ignored. Cure: name some of: di",
        lambda _, flavour: flavour.vdus["worker"].storages == ("disk",),
    ),
    "boot data with a place for a file": (
        varied(
            "        name: worker\n",
            "        name: worker\n        boot_data: {content_or_file_data: {content: x, destination_path: /etc/x}}\n",
        ),
        "Boot data of VDU 'worker' has destination_path: nothing is done about it. Cure: let the boot data, which is",
        lambda _, flavour: flavour.vdus["worker"].boot_data == "x",
    ),
    "boot data for a VIM": (
        varied(
            "        name: worker\n",
            "        name: worker\n        boot_data: {vim_specific_properties: {vim_type: x, properties: {a: b}}}\n",
        ),
        "Boot data of VDU 'worker' has vim_specific_properties: nothing is done about it.",
        lambda _, flavour: flavour.vdus["worker"].boot_data is None,
    ),
    "addresses that a port may use beside its own": (
        varied("layer_protocols: [ipv4]", "allowed_address_data: {address_type: ip_address}"),
        "The connection point 'cp' has allowed_address_data: nothing is done about it. Cure: remove it, or write a",
        lambda _, flavour: "cp" in flavour.connection_points,
    ),
    "a floating IP": (
        varied(
            "layer_protocols: [ipv4]",
            "protocol: [{address_data: [{l3_address_data: {floating_ip_activated: true}}]}]",
        ),
        "The connection point 'cp' has floating_ip_activated: nothing is done about it.",
        lambda _, flavour: "cp" in flavour.connection_points,
    ),
    "a connection point for a shared address": (
        varied("    cp:\n", "    vip: {type: tosca.nodes.nfv.VipCp}\n    cp:\n"),
        "The connection point 'vip' is for an address that others share: no port is made for it.",
        lambda _, flavour: list(flavour.connection_points) == ["cp"],
    ),
    "a network without DHCP": (
        varied("cidr: 10.0.0.0/24", "cidr: 10.0.0.0/24, dhcp_enabled: false"),
        "The virtual link 'net' has dhcp_enabled: nothing is done about it. Cure: remove it, or write a template in",
        lambda _, flavour: "net" in flavour.virtual_links,
    ),
    "a network with a gateway": (
        varied("cidr: 10.0.0.0/24", "cidr: 10.0.0.0/24, gateway_ip: 10.0.0.9"),
        "The virtual link 'net' has gateway_ip: nothing is done about it.",
        lambda _, flavour: "net" in flavour.virtual_links,
    ),
    "a network with two ranges": (
        varied(
            "            - l3_protocol_data: {ip_version: ipv4, cidr: 10.0.0.0/24}\n",
            "            - l3_protocol_data: {ip_version: ipv4, cidr: 10.0.0.0/24}\n"
            "            - l3_protocol_data: {ip_version: ipv6, cidr: 'fd12::/64'}\n",
        ),
        "The virtual link 'net' has 2 l3_protocol_data: the first one counts.",
        lambda _, flavour: flavour.virtual_links["net"].cidr == "10.0.0.0/24",
    ),
    "a rule of who may reach a connection point": (
        varied(
            "  policies:\n",
            "  policies:\n"
            "    - guard: {type: tosca.policies.nfv.SecurityGroupRule, targets: [cp], properties: {protocol: tcp}}\n",
        ),
        "The policy 'guard' says what may reach connection points: nothing is done about it, and the VIM's own rules "
        "count. Cure: set those, or write a template in BaseHOT that has it.",
        lambda _, flavour: "cp" in flavour.connection_points,
    ),
    "an affinity rule for virtual links": (
        varied("[all_workers]", "[all_workers, net]"),
        "The policy 'apart' is for virtual links (net): nothing is done about those. Cure: remove them, or name VDUs.",
        lambda _, flavour: flavour.placement[0].targets == ("worker", "net"),
    ),
    "two ids of one product": (
        _with_file(_FLAVOUR_LARGE.replace("large}", "large, descriptor_id: 00000000-ebca-4fa7-95ed-4840d70a1177}")),
        "Definitions/other.yaml:2: descriptor_id is '00000000-ebca-4fa7-95ed-4840d70a1177' here and"
        " 'b1bb0ce7-ebca-4fa7-95ed-4840d70a1177' in Definitions/vnfd.yaml, which counts."
        " Cure: write the same in both, or remove this one.",
        lambda descriptor, _: descriptor.vnfd_id == "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_contradiction_that_harms_nothing_is_a_warning(case: str, tmp_path: Path) -> None:
    files, expected, is_right = CASES[case]
    package = read(files, tmp_path)
    assert expected in str(package.warnings[0])
    assert str(package.warnings[0]).isprintable()
    assert is_right(package.descriptor, next(iter(package.descriptor.flavours.values())))


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    contradictions = {
        "aspect: out": "aspect: sideways",
        "scale_start: []": "instantiate: {implementation: installer}",
        "big: {number": "huge: {number",
        "big: {scale_info: {out:": "big: {scale_info: {up: {scale_level: 1}, out:",
        "[all_workers]": "[all_workers, nobody]",
    }
    text = VNFD_TEXT
    for right, wrong in contradictions.items():
        text = text.replace(right, wrong)
    warnings = read(valid_files(text), tmp_path).warnings
    printed = [line.removeprefix("Warning").strip() for line in PAGE.splitlines() if line.startswith("Warning ")]
    assert printed == [str(warning) for warning in warnings]


def test_a_package_without_contradictions_has_no_warnings(tmp_path: Path) -> None:
    assert read(valid_files(), tmp_path).warnings == ()


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_have_no_warnings(sample: str, tmp_path: Path) -> None:
    tree = shutil.copytree(ROOT / "samples" / sample, tmp_path / "sample")
    for name in PUT_INTO.get(sample, ()):
        (tree / "Files" / "kubernetes").mkdir(parents=True, exist_ok=True)
        (tree / "Files" / "kubernetes" / name).touch()
    assert build_package(tree, tmp_path / "sample.csar").warnings == ()


@pytest.mark.parametrize("file", ["https://example.com/web.yaml", "Files/absent.yaml", "https://example.com/web.tgz"])
def test_a_manifest_or_chart_outside_of_the_package_is_told_and_not_passed_over_in_silence(
    file: str, tmp_path: Path
) -> None:
    nodes = f"""\
    cnf:
      type: tosca.nodes.nfv.Mciop
      artifacts:
        web: {{type: tosca.artifacts.nfv.MciopArtifact, file: '{file}'}}
        image: {{type: tosca.artifacts.nfv.SwImage, file: 'https://example.com/web.qcow2'}}
  groups:
"""
    (warning,) = read(varied("  groups:\n", nodes), tmp_path).warnings
    assert f"The artifact 'web' ({file}) of 'cnf' is not in the package: no VNF gets it." in str(warning)
    assert "put the file into the package" in str(warning)


def test_a_management_cluster_without_its_manifests_is_told_which_it_lacks(tmp_path: Path) -> None:
    warnings = build_package(ROOT / "samples" / "management-cluster", tmp_path / "sample.csar").warnings
    names = PUT_INTO["management-cluster"]
    assert all(f"Files/kubernetes/{name}" in str(one) for name, one in zip(names, warnings, strict=True))


def test_warnings_are_few_and_short_however_much_is_wrong(tmp_path: Path) -> None:
    aspect, target = "\\U0001F600\\n" * 400, "t" * 100_000
    policies = "".join(
        f"    - {'p' * 900}{number}: {{type: tosca.policies.nfv.VduScalingAspectDeltas, targets: [{target}],"
        f' properties: {{aspect: "{aspect}"}}}}\n'
        for number in range(30)
    )
    targets = ", ".join(f"n{n}" for n in range(500))
    policies += "".join(
        f"    - q{number}: {{type: tosca.policies.nfv.AffinityRule, targets: [{targets}]}}\n" for number in range(250)
    )
    warnings = read(valid_files(VNFD_TEXT + policies), tmp_path).warnings
    assert len(warnings) == MOST_WARNINGS + 1
    assert warnings[-1].what == f"{280 - MOST_WARNINGS} more warnings are left out."
    assert all(len(one.what) <= LONGEST_TEXT and len(one.cure) <= LONGEST_TEXT for one in warnings)
    assert all(str(one).isprintable() for one in warnings)


def test_a_warning_of_a_long_file_name_is_cut() -> None:
    warnings = Warnings()
    warnings.add(PackageError("w" * 5000, file="f" * 5000, cure="c" * 5000))
    (one,) = warnings.all()
    assert (len(one.file), len(one.what), len(one.cure)) == (LONGEST_TEXT,) * 3


def test_every_operation_with_hooks_is_known_to_the_reader() -> None:
    assert {rules.hook for rules in OPERATIONS.values()} == set(HOOKED_OPERATIONS)
