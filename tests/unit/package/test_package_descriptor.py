"""What the VNFD says arrives in the Descriptor."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from slipway.model.descriptor import Descriptor, Flavour, Hook
from slipway.model.errors import PackageError
from slipway.model.package import Checksum
from slipway.package.tosca.descriptor import TOSCA_VERSIONS
from tests.unit.package.csars import SCRIPT, VNFD, VNFD_TEXT, read, valid_files, varied

IMAGE = "Files/images/node.img"
INSTALLER = Hook(
    operation="heal_end", implementation="installer", file=SCRIPT, type="tosca.artifacts.Implementation.Bash"
)


def flavour_of(files: dict[str, bytes], folder: Path) -> Flavour:
    return read(files, folder).descriptor.flavours["simple"]


def with_worker(lines: str) -> dict[str, bytes]:
    """More lines among the worker's properties."""
    return varied("        name: worker\n", f"        name: worker\n{lines}")


def test_product_properties_keep_the_text_as_written(tmp_path: Path) -> None:
    descriptor = read(valid_files(), tmp_path).descriptor
    assert descriptor.vnfd_id == "b1bb0ce7-ebca-4fa7-95ed-4840d70a1177"
    assert (descriptor.provider, descriptor.product_name) == ("Company", "Sample")
    assert (descriptor.software_version, descriptor.vnfd_version) == ("2.0", "1.10")


def test_older_property_names_are_understood(tmp_path: Path) -> None:
    text = VNFD_TEXT.replace("descriptor_id:", "id:").replace("provider: Company", "vendor: Company")
    text = text.replace("        descriptor_version: 1.10\n", "").replace("software_version:", "version:")
    descriptor = read(valid_files(text), tmp_path).descriptor
    assert (descriptor.provider, descriptor.software_version, descriptor.vnfd_version) == ("Company", "2.0", "2.0")


def test_a_descriptor_survives_json(tmp_path: Path) -> None:
    descriptor = read(valid_files(), tmp_path).descriptor
    assert msgspec.json.decode(msgspec.json.encode(descriptor), type=Descriptor) == descriptor


def test_nodes_of_a_flavour(tmp_path: Path) -> None:
    flavour = flavour_of(valid_files(), tmp_path)
    worker = flavour.vdus["worker"]
    assert (worker.minimum, worker.maximum, worker.initial, worker.storages) == (1, 5, 1, ("disk",))
    assert flavour.storages["disk"].size_bytes == 10_000_000_000
    point = flavour.connection_points["cp"]
    assert (point.vdu, point.virtual_link, point.order) == ("worker", "net", 0)
    assert flavour.virtual_links["net"].cidr == "10.0.0.0/24"


def test_compute_capabilities(tmp_path: Path) -> None:
    capabilities = """\
      capabilities:
        virtual_compute:
          properties:
            requested_additional_capabilities:
              properties: {requested_additional_capability_name: m1.medium, support_mandatory: true}
            virtual_cpu: {num_virtual_cpu: 2}
            virtual_memory: {virtual_mem_size: 4096 MiB}
            virtual_local_storage: [{size_of_storage: 45 GB}, {size_of_storage: 5 gb}]
"""
    vdu = flavour_of(
        varied(
            "      requirements:\n        - virtual_storage",
            f"{capabilities}      requirements:\n        - virtual_storage",
        ),
        tmp_path,
    ).vdus["worker"]
    assert (vdu.flavour, vdu.cpus, vdu.memory_bytes) == ("m1.medium", 2, 4 * 1024**3)
    assert vdu.disk_bytes == 50_000_000_000


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("        boot_data: '#cloud-config'\n", "#cloud-config"),
        ("        boot_data: {content_or_file_data: {content: hello}}\n", "hello"),
        ("        boot_data: {content_or_file_data: {source_path: Scripts/install.sh}}\n", None),
        ("        boot_data: Scripts/install.sh\n", None),
    ],
    ids=["text", "content", "file", "text that names a file"],
)
def test_boot_data(lines: str, expected: str | None, tmp_path: Path) -> None:
    vdu = flavour_of(with_worker(lines), tmp_path).vdus["worker"]
    assert vdu.boot_data == (expected or valid_files()[SCRIPT].decode())


@pytest.mark.parametrize("pairs", ["{data: {role: worker, id: 007}}", "{role: worker, id: 007}"])
def test_key_value_pairs_of_boot_data(pairs: str, tmp_path: Path) -> None:
    vdu = flavour_of(with_worker(f"        boot_data: {{kvp_data: {pairs}}}\n"), tmp_path).vdus["worker"]
    assert vdu.metadata == {"role": "worker", "id": "007"}
    assert vdu.boot_data is None


@pytest.mark.parametrize("order", ["true", "[disk]"])
def test_storages_with_an_image_are_in_the_boot_order(order: str, tmp_path: Path) -> None:
    lines = f"        boot_order: {order}\n"
    assert flavour_of(with_worker(lines), tmp_path).vdus["worker"].boot_order == ()
    image = "        sw_image_data: {name: root, version: 1}\n        virtual_block_storage_data:\n"
    text = with_worker(lines)[VNFD].decode().replace("        virtual_block_storage_data:\n", image)
    assert flavour_of(valid_files(text), tmp_path).vdus["worker"].boot_order == ("disk",)


def test_vnic_types(tmp_path: Path) -> None:
    def of(kind: str) -> str | None:
        files = varied("layer_protocols: [ipv4]", f"vnic_type: {kind}")
        return flavour_of(files, tmp_path).connection_points["cp"].vnic_type

    assert (of("direct"), of("virtio")) == ("direct", "normal")
    with pytest.raises(PackageError, match="vnic_type 'fast' of the connection point 'cp' is none"):
        of("fast")


def _with_image(digest: str, *, in_package: bool = True) -> dict[str, bytes]:
    lines = f"""\
        sw_image_data:
          name: node
          version: 22.04
          checksum: {{algorithm: sha-256, hash: {digest}}}
          container_format: bare
          disk_format: qcow2
          min_disk: 2 GB
          size: 1 GB
"""
    files = with_worker(lines)
    if in_package:
        artifact = (
            "      artifacts: {sw_image: {type: tosca.artifacts.nfv.SwImage, file: ../"
            + IMAGE
            + "}}\n      requirements:\n        - virtual_storage"
        )
        text = files[VNFD].decode().replace("      requirements:\n        - virtual_storage", artifact)
        files = {**files, VNFD: text.encode(), IMAGE: b"image"}
    return files


def test_software_images(tmp_path: Path) -> None:
    digest = "6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d"
    package = read(_with_image(digest), tmp_path)
    (image,) = package.software_images
    assert (image.id, image.name, image.version, image.image_path) == ("worker", "node", "22.04", IMAGE)
    assert (image.checksum, image.min_disk) == (Checksum("sha-256", digest), 2_000_000_000)
    assert IMAGE not in [one.artifact_path for one in package.artifacts]


def test_an_image_that_is_not_its_checksum_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=f"{IMAGE} does not match"):
        read(_with_image("0" * 64), tmp_path)


def test_an_image_of_the_vim_needs_no_file(tmp_path: Path) -> None:
    (image,) = read(_with_image("0" * 64, in_package=False), tmp_path).software_images
    assert image.image_path is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{implementation: installer}", INSTALLER),
        ("{implementation: {primary: installer}}", INSTALLER),
        ("installer", INSTALLER),
        ("{implementation: a-driver}", Hook(operation="heal_end", implementation="a-driver")),
        ("Scripts/install.sh", Hook(operation="heal_end", implementation=SCRIPT, file=SCRIPT)),
        ("../Scripts/install.sh", Hook(operation="heal_end", implementation="../Scripts/install.sh", file=SCRIPT)),
        (
            "{implementation: a-driver, inputs: {site: north, retries: 3}}",
            Hook(operation="heal_end", implementation="a-driver", inputs={"site": "north", "retries": 3}),
        ),
        ("[]", None),
        ("null", None),
        ("{}", None),
        ("{implementation: []}", None),
        ("{implementation: null}", None),
    ],
)
def test_hooks(written: str, expected: Hook | None, tmp_path: Path) -> None:
    flavour = flavour_of(varied("scale_start: []", f"heal_end: {written}"), tmp_path)
    assert flavour.hooks.get("heal_end") == expected


def test_inputs_of_a_hook_are_bounded(tmp_path: Path) -> None:
    inputs = "{implementation: a-driver, inputs: {text: " + "x" * (64 << 10) + "}}"
    with pytest.raises(PackageError, match="The inputs of 'heal_end' are larger than 64 KiB"):
        flavour_of(varied("scale_start: []", f"heal_end: {inputs}"), tmp_path)


@pytest.mark.parametrize("path", ["../Scripts/install.sh", "Scripts/install.sh"])
def test_artifact_paths_count_from_the_file_or_from_the_root(path: str, tmp_path: Path) -> None:
    flavour = flavour_of(varied("../Scripts/install.sh", path), tmp_path)
    assert flavour.hooks["instantiate_end"].file == SCRIPT


def test_placement_groups_stand_for_their_members(tmp_path: Path) -> None:
    (rule,) = flavour_of(valid_files(), tmp_path).placement
    assert (rule.apart, rule.scope, rule.targets) == (True, "zone", ("worker",))


@pytest.mark.parametrize(("level", "scale", "count"), [("small", 0, 1), ("small", 2, 3), ("big", 2, 3), ("big", 3, 4)])
def test_members_with_counts_given_outright(level: str, scale: int, count: int, tmp_path: Path) -> None:
    flavour = flavour_of(valid_files(), tmp_path)
    assert flavour.members("worker", {"out": scale}, flavour.level(level)) == count


@pytest.mark.parametrize(("scale", "count"), [(0, 1), (1, 2), (3, 4)])
def test_members_by_initial_delta_and_steps(scale: int, count: int, tmp_path: Path) -> None:
    text = VNFD_TEXT[: VNFD_TEXT.index("    - counts:")]
    flavour = flavour_of(valid_files(text), tmp_path)
    assert flavour.level("small").counts == {}
    assert flavour.members("worker", {"out": scale}, flavour.level("small")) == count


def test_members_without_any_policy_are_the_profiles_minimum(tmp_path: Path) -> None:
    text = VNFD_TEXT[: VNFD_TEXT.index("  policies:")].replace(
        "min_number_of_instances: 1", "min_number_of_instances: 2"
    )
    flavour = flavour_of(valid_files(text), tmp_path)
    assert flavour.members("worker", {}, flavour.level(None)) == 2


def test_each_step_may_have_its_own_delta(tmp_path: Path) -> None:
    text = VNFD_TEXT.replace("step_deltas: [one]", "step_deltas: [one, two, one]")
    text = text.replace(
        "            one: {number_of_instances: 1}",
        "            one: {number_of_instances: 1}\n            two: {number_of_instances: 2}",
    )
    flavour = flavour_of(valid_files(text), tmp_path)
    assert [flavour.members("worker", {"out": level}) for level in range(4)] == [1, 2, 4, 5]


def test_several_levels_without_a_default_fall_back_to_the_initial_counts(tmp_path: Path) -> None:
    flavour = flavour_of(varied("          default_level: small\n", ""), tmp_path)
    assert flavour.default_level is None
    assert flavour.members("worker", {}, flavour.level(None)) == 1


def test_dependencies_between_vdus_are_read(tmp_path: Path) -> None:
    lines = """\
    database: {type: tosca.nodes.nfv.Vdu.Compute, properties: {name: database}}
    web:
      type: tosca.nodes.nfv.Vdu.Compute
      requirements:
        - dependency: worker
        - dependency: {node: database}
        - dependency: {node: database, capability: feature}
        - dependency: net
  groups:
"""
    flavour = flavour_of(varied("  groups:\n", lines), tmp_path)
    assert flavour.vdus["web"].depends_on == ("worker", "database")
    assert flavour.dependencies() == {"web": ("worker", "database")}


@pytest.mark.parametrize("version", ["tosca_simple_yaml_1_0", "tosca_simple_yaml_1_1", "tosca_simple_yaml_1_3"])
def test_every_tosca_version_in_yaml_is_read(version: str, tmp_path: Path) -> None:
    assert read(varied("tosca_simple_yaml_1_2", version), tmp_path).descriptor.product_name == "Sample"


def test_a_container_unit_with_its_chart(tmp_path: Path) -> None:
    nodes = """\
    pod:
      type: tosca.nodes.nfv.Vdu.OsContainerDeployableUnit
      properties: {name: pod, vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 3}}
      requirements: [{container: web}]
    web:
      type: tosca.nodes.nfv.Vdu.OsContainer
      properties: {name: web, requested_cpu_resources: 500}
      artifacts: {sw_image: {type: tosca.artifacts.nfv.SwImage, file: 'registry.example/web:1'}}
    chart:
      type: tosca.nodes.nfv.Mciop
      requirements: [{associatedVdu: pod}]
      artifacts: {helm: {type: tosca.artifacts.nfv.HelmChart, file: Files/chart.tgz}}
  groups:
"""
    files = varied("  groups:\n", nodes)
    flavour = flavour_of({**files, "Files/chart.tgz": b"chart"}, tmp_path)
    pod = flavour.vdus["pod"]
    assert pod.container
    assert pod.image is not None
    assert pod.image.name == "registry.example/web:1"


def test_an_unknown_container_is_refused(tmp_path: Path) -> None:
    nodes = (
        "    pod: {type: tosca.nodes.nfv.Vdu.OsContainerDeployableUnit, requirements: [{container: web}]}\n  groups:\n"
    )
    with pytest.raises(PackageError, match="container 'web'"):
        read(varied("  groups:\n", nodes), tmp_path)


def test_an_artifact_digest_in_the_vnfd_is_checked(tmp_path: Path) -> None:
    wrong = "file: ../Scripts/install.sh\n          checksum: abc\n          checksum_algorithm: SHA-256"
    with pytest.raises(PackageError, match=f"{VNFD}:29: The digest of {SCRIPT} does not match"):
        read(varied("file: ../Scripts/install.sh", wrong), tmp_path)


def test_a_large_default_can_not_be_multiplied(tmp_path: Path) -> None:
    inputs = "topology_template:\n  inputs: {big: {default: {a: {b: c}}}}\n  substitution_mappings:"
    text = VNFD_TEXT.replace("topology_template:\n  substitution_mappings:", inputs)
    properties = "        vnfm_info: [Slipway]\n        configurable_properties: {extra: {get_input: big}}\n"
    text = text.replace("        vnfm_info: [Slipway]\n", properties)
    assert read(valid_files(text), tmp_path).descriptor.configurable_properties["extra"] == {"get_input": "big"}


@pytest.mark.parametrize("written", ["'+1'", "'001'", f"'{'0' * 5000}1'", "+1"])
def test_a_sign_and_leading_zeros_do_not_count_as_digits(tmp_path: Path, written: str) -> None:
    files = varied("min_number_of_instances: 1", f"min_number_of_instances: {written}")
    assert flavour_of(files, tmp_path).vdus["worker"].minimum == 1


def test_leading_zeros_of_a_size_do_not_make_it_large(tmp_path: Path) -> None:
    storages = flavour_of(varied("10 GB", f"{'0' * 40}10 GB"), tmp_path).storages.values()
    assert 10 * 1000**3 in [storage.size_bytes for storage in storages]


def test_the_page_names_each_tosca_that_is_read() -> None:
    page = (Path(__file__).parents[3] / "docs" / "packages.md").read_text()
    assert "`tosca_simple_yaml_1_0` to `1_3`" in page
    others = [version for version in TOSCA_VERSIONS if not version.startswith("tosca_simple_yaml_1_")]
    assert all(f"`{version}`" in page for version in others)
