"""What a VNFD and the Heat templates of an unpacked package say, by flavour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from tacker.sol_refactored.common.exceptions import DeltaMissingInVnfd, InvalidVnfdFormat

COMPUTE, STORAGE = "tosca.nodes.nfv.Vdu.Compute", "tosca.nodes.nfv.Vdu.VirtualBlockStorage"
LINK, POINT = "tosca.nodes.nfv.VnfVirtualLink", "tosca.nodes.nfv.VduCp"
Targets = list[tuple[list[str], str]]


class Vnfd:
    """A flavour's file is parsed when it is asked for: types alone would take a second."""

    def __init__(self, vnfd_id: str) -> None:
        self.vnfd_id = vnfd_id
        self.csar_dir: str | None = None
        self._flavours: dict[str, dict[str, Any]] = {}

    def init_from_csar_dir(self, csar_dir: str) -> None:
        self.csar_dir = csar_dir

    @property
    def _directory(self) -> Path:
        if self.csar_dir is None:
            raise InvalidVnfdFormat(sol_detail="init_from_csar_dir() comes first")
        return Path(self.csar_dir)

    @property
    def _files(self) -> list[Path]:
        files = yaml_files(self._directory / "Definitions") or yaml_files(self._directory)
        if not files:
            raise InvalidVnfdFormat
        return files

    @cached_property
    def definitions(self) -> dict[str, Any]:
        return {file.name: yaml.safe_load(file.read_text()) for file in self._files}

    @cached_property
    def tosca_meta(self) -> dict[str, Any]:
        file = self._directory / "TOSCA-Metadata" / "TOSCA.meta"
        first = file.read_text().split("\n\n")[0] if file.exists() else ""
        return yaml.safe_load(first) or {}

    def get_vnfd_flavour(self, flavour_id: str) -> dict[str, Any]:
        """The definitions file of the flavour. Where none names it, the only one that has VDUs."""
        if flavour_id not in self._flavours:
            self._flavours[flavour_id] = self._flavour(flavour_id)
        return self._flavours[flavour_id]

    def _flavour(self, flavour_id: str) -> dict[str, Any]:
        texts = [text for file in self._files if "substitution_mappings" in (text := file.read_text())]
        documents = [one for text in texts if isinstance(one := yaml.safe_load(text), dict)]
        for document in documents:
            if dig(document, "topology_template", "substitution_mappings", "properties", "flavour_id") == flavour_id:
                return document
        described = [one for one in documents if any(_of_type(_nodes(one).items(), COMPUTE))]
        return described[0] if len(described) == 1 else {}

    # --- nodes

    def get_nodes(self, flavour_id: str, node_type: str) -> dict[str, Any]:
        return dict(_of_type(_nodes(self.get_vnfd_flavour(flavour_id)).items(), node_type))

    def get_vdu_nodes(self, flavour_id: str) -> dict[str, Any]:
        return self.get_nodes(flavour_id, COMPUTE)

    def get_storage_nodes(self, flavour_id: str) -> dict[str, Any]:
        return self.get_nodes(flavour_id, STORAGE)

    def get_virtual_link_nodes(self, flavour_id: str) -> dict[str, Any]:
        return self.get_nodes(flavour_id, LINK)

    def get_vducp_nodes(self, flavour_id: str) -> dict[str, Any]:
        return self.get_nodes(flavour_id, POINT)

    def get_vdu_cps(self, flavour_id: str, vdu_name: str) -> list[str]:
        points = self.get_vducp_nodes(flavour_id).items()
        return [name for name, node in points if vdu_name in _required(node, "virtual_binding")]

    def get_vdu_storages(self, vdu_node: dict[str, Any]) -> list[str]:
        return list(_required(vdu_node, "virtual_storage"))

    def get_vl_name_from_cp(self, flavour_id: str, cp_data: dict[str, Any]) -> str | None:
        return next(_required(cp_data, "virtual_link"), None)

    def get_sw_image_data(self, flavour_id: str) -> dict[str, Any]:
        found = {}
        for kind in (COMPUTE, STORAGE):
            for name, node in self.get_nodes(flavour_id, kind).items():
                if image := dig(node, "properties", "sw_image_data"):
                    file = dig(node, "artifacts", "sw_image", "file")
                    found[name] = {**image, **({"file": file} if file else {})}
        return found

    def get_sw_image(self, flavour_id: str) -> dict[str, str]:
        return {name: image["name"] for name, image in self.get_sw_image_data(flavour_id).items()}

    def get_compute_flavor(self, flavour_id: str, vdu_name: str) -> str | None:
        return capability_name(_nodes(self.get_vnfd_flavour(flavour_id)).get(vdu_name))

    # --- policies

    def get_policy_values_by_type(self, flavour_id: str, policy_type: str) -> list[dict[str, Any]]:
        topology = dig(self.get_vnfd_flavour(flavour_id), "topology_template")
        return [policy for _, policy in _of_type(_flat(topology, "policies"), policy_type)]

    def _properties(self, flavour_id: str, kind: str) -> list[dict[str, Any]]:
        policies = self.get_policy_values_by_type(flavour_id, f"tosca.policies.nfv.{kind}")
        return [policy.get("properties") or {} for policy in policies]

    def get_default_instantiation_level(self, flavour_id: str) -> str | None:
        return next((one.get("default_level") for one in self._properties(flavour_id, "InstantiationLevels")), None)

    def get_scale_info_from_inst_level(self, flavour_id: str, inst_level: str) -> dict[str, Any]:
        levels = self._properties(flavour_id, "InstantiationLevels")
        return (dig(levels[0], "levels", inst_level, "scale_info") if levels else None) or {}

    def get_vdu_num(self, flavour_id: str, vdu_name: str, instantiation_level: str) -> int:
        kind = "tosca.policies.nfv.VduInstantiationLevels"
        for policy in self.get_policy_values_by_type(flavour_id, kind):
            if vdu_name in policy.get("targets", ()):
                return int(dig(policy, "properties", "levels", instantiation_level, "number_of_instances") or 0)
        return 0

    def get_initial_delta(self, flavour_id: str, vdu_id: str) -> int | None:
        for policy in self.get_policy_values_by_type(flavour_id, "tosca.policies.nfv.VduInitialDelta"):
            if vdu_id in policy.get("targets", ()):
                number: int | None = dig(policy, "properties", "initial_delta", "number_of_instances")
                return number
        return None

    def _aspect(self, flavour_id: str, aspect_id: str) -> dict[str, Any]:
        aspects = [dig(one, "aspects", aspect_id) for one in self._properties(flavour_id, "ScalingAspects")]
        return next(filter(None, aspects), {})

    def get_max_scale_level(self, flavour_id: str, aspect_id: str) -> int:
        return int(self._aspect(flavour_id, aspect_id).get("max_scale_level", 0))

    def get_scale_vdu_and_num(self, flavour_id: str, aspect_id: str) -> dict[str, int]:
        """How many members each VDU of the aspect gets by one step: steps are all alike."""
        step = next(iter(self._aspect(flavour_id, aspect_id).get("step_deltas", ())), None)
        if step is None:
            return {}
        numbers = {}
        for policy in self.get_policy_values_by_type(flavour_id, "tosca.policies.nfv.VduScalingAspectDeltas"):
            if dig(policy, "properties", "aspect") == aspect_id:
                number = dig(policy, "properties", "deltas", step, "number_of_instances")
                if number is None:
                    raise DeltaMissingInVnfd(delta=step)
                numbers.update(dict.fromkeys(policy["targets"], int(number)))
        return numbers

    def get_placement_groups(self, flavour_id: str) -> dict[str, list[str]]:
        groups = _flat(dig(self.get_vnfd_flavour(flavour_id), "topology_template"), "groups")
        return {name: group["members"] for name, group in _of_type(groups, "tosca.groups.nfv.PlacementGroup")}

    def get_affinity_targets(self, flavour_id: str) -> Targets:
        return self._rules(flavour_id, "AffinityRule")

    def get_anti_affinity_targets(self, flavour_id: str) -> Targets:
        return self._rules(flavour_id, "AntiAffinityRule")

    def _rules(self, flavour_id: str, kind: str) -> Targets:
        groups = self.get_placement_groups(flavour_id)
        return [
            ([vdu for name in policy["targets"] for vdu in groups.get(name, [name])], scope)
            for policy in self.get_policy_values_by_type(flavour_id, f"tosca.policies.nfv.{kind}")
            if (scope := dig(policy, "properties", "scope")) in ("zone", "nfvi_node")
        ]

    # --- templates

    def get_base_hot(self, flavour_id: str) -> dict[str, Any]:
        """`template`, and `files` when it has nested ones; nothing when the flavour has no template."""
        top = self._directory / "BaseHOT" / flavour_id
        templates = [yaml.safe_load(file.read_text()) for file in yaml_files(top)[:1]]
        nested = {file.name: yaml.safe_load(file.read_text()) for file in yaml_files(top / "nested")}
        return {**({"template": templates[0]} if templates else {}), **({"files": nested} if nested else {})}


def yaml_files(directory: Path) -> list[Path]:
    """In the order of their names."""
    if not directory.is_dir():
        return []
    return sorted(file for file in directory.iterdir() if file.suffix in (".yaml", ".yml") and file.is_file())


def dig(value: Any, *keys: str) -> Any:
    """What is below those keys; None when there is nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def capability_name(node: Any) -> str | None:
    """The name of the flavor that a VDU asks for. What stands before it is the VNFD's own word, often `properties`."""
    asked = dig(node, "capabilities", "virtual_compute", "properties", "requested_additional_capabilities")
    names = (dig(one, "requested_additional_capability_name") for one in (asked or {}).values())
    return next((name for name in names if name is not None), None)


def _nodes(document: dict[str, Any]) -> dict[str, Any]:
    return dig(document, "topology_template", "node_templates") or {}


def _of_type(named: Iterable[tuple[str, Any]], kind: str) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in named if dig(value, "type") == kind)


def _flat(topology: Any, key: str) -> list[tuple[str, Any]]:
    """Policies and groups are written as a list of small mappings, or as one mapping."""
    written = dig(topology, key) or []
    return [named for part in (written if isinstance(written, list) else [written]) for named in part.items()]


def _required(node: dict[str, Any], kind: str) -> Iterator[str]:
    """What a node requires of that kind, by name."""
    for requirement in node.get("requirements") or ():
        target = requirement.get(kind)
        if target is not None:
            yield target["node"] if isinstance(target, dict) else target
