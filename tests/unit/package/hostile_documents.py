"""VNFDs, metadata and other YAML that must be refused, by name, each with the reason that must be given."""

from __future__ import annotations

from tests.unit.package.csars import (
    HEAD,
    META,
    SCRIPT,
    VNFD,
    VNFD_TEXT,
    block,
    valid_files,
    varied,
)
from tests.unit.package.hostile_archives import MIB, Builder


def _yaml(text: str | bytes) -> Builder:
    content = text if isinstance(text, bytes) else text.encode()
    return lambda: {**valid_files(), VNFD: content}


def _laughs() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 12)]
    return "\n".join(lines).encode()


def _meta(text: str) -> Builder:
    return lambda: {**valid_files(), META: text.encode()}


def _import(target: str) -> Builder:
    return lambda: varied("etsi_nfv_sol001_vnfd_types.yaml", target)


def _vnfd(old: str, new: str) -> Builder:
    return lambda: varied(old, new)


def _only(*kept: str) -> str:
    """The valid VNFD with these nodes and no policies."""
    head, _, rest = VNFD_TEXT.partition("  node_templates:\n")
    nodes, name = "", ""
    for line in rest.partition("  groups:\n")[0].splitlines(keepends=True):
        name = line.strip(" :\n") if line.startswith("    ") and line[4] != " " else name
        nodes += line if name in kept else ""
    return f"{head}  node_templates:\n{nodes}"


def _types(types: str) -> Builder:
    return lambda: varied("topology_template:\n", f"node_types: {{{types}}}\ntopology_template:\n")


def _depending(*pairs: str) -> Builder:
    """`a: b`: the VDU a depends on b."""
    on = dict(pair.split(": ") for pair in pairs)
    others = "".join(
        f"    {name}: {{type: tosca.nodes.nfv.Vdu.Compute, requirements: [{{dependency: {{node: {on[name]}}}}}]}}\n"
        for name in on
        if name != "worker"
    )
    return lambda: valid_files(
        VNFD_TEXT.replace(
            "- virtual_storage: disk", f"- virtual_storage: disk\n        - dependency: {on['worker']}"
        ).replace("  groups:\n", f"{others}  groups:\n")
    )


YAMLS: dict[str, tuple[Builder, str]] = {
    "alias bomb": (lambda: {**valid_files(), VNFD: _laughs()}, "aliases spelled out"),
    "alias of itself": (_yaml("a: &a [*a]"), "no finished anchor"),
    "deep nesting": (_yaml("a: " + "[" * 5000), "nested too deeply"),
    "deep nesting in block style": (_yaml("".join("  " * n + "a:\n" for n in range(100))), "nested too deeply"),
    "deep nesting by aliases": (
        _yaml("a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40),
        "nested too deeply",
    ),
    "Python object": (_yaml("a: !!python/object/apply:os.system [id]"), "not one of plain YAML"),
    "foreign tag": (_yaml("a: !secret b"), "not one of plain YAML"),
    "key that a tag makes a merge": (_yaml("!!merge a: {b: c}"), "not one of plain YAML"),
    "key that a tag makes none": (_yaml("!!null a: b"), "not one of plain YAML"),
    "tag directive": (_yaml("%TAG ! tag:evil,2000:\n---\na: 1"), "%TAG directives"),
    "key given twice": (_yaml("a: 1\na: 2"), "given twice"),
    "endless key": (_yaml("? " + "k" * 5000 + "\n: c"), "longer than 1024"),
    "mapping as key": (_yaml("? {a: b}\n: c"), "key is itself a mapping"),
    "two documents": (_yaml("a: 1\n---\nb: 2"), "more than one document"),
    "list at the root": (_yaml("- a"), "root is not a mapping"),
    "not UTF-8": (_yaml(b"a: \xff\xfe"), "not UTF-8"),
    "NUL in a text": (_yaml('a: "\\0"'), "NUL"),
    "unfinished YAML": (_yaml("a: [1, 2"), "Not valid YAML"),
    "too many values": (_yaml("a: [" + "1," * 250_000 + "]"), "more than 200000 values"),
    "too large a file": (_yaml("a: " + "x" * (4 * MIB)), "larger than"),
    "VNFD files too large together": (
        lambda: {
            **varied("etsi_nfv_sol001_vnfd_types.yaml", "a.yaml\n  - b.yaml\n  - c.yaml"),
            **{f"Definitions/{name}.yaml": b"a: " + b"x" * (3 * MIB) for name in "abc"},
        },
        "larger than",
    ),
}
METAS: dict[str, tuple[Builder, str]] = {
    "no entry definitions": (_meta("TOSCA-Meta-File-Version: 1.0\n"), "Entry-Definitions is missing"),
    "empty TOSCA.meta": (_meta(""), "Entry-Definitions is missing"),
    "entry outside": (_meta("Entry-Definitions: ../../etc/passwd\n"), "not in the package"),
    "line without a colon": (_meta(HEAD + "nonsense\n"), "not of the form"),
    "endless lines": (_meta(HEAD + "\na:\n" * 300_000), "more than 100000 lines"),
    "endless line": (_meta(HEAD + "\nName: " + "n" * 5000), "5006 characters; at most 4096"),
    "escape sequence in a line": (_meta(HEAD + "Created-by: \x1b[2J\n"), "control or invisible characters"),
    "key twice": (_meta(HEAD + f"Entry-Definitions: {VNFD}\n"), "given twice"),
    "digest that does not match": (_meta(HEAD + block(SCRIPT, b"something else")), "does not match"),
    "digest of an absent file": (_meta(HEAD + block("Scripts/absent.sh", b"")), "not in the package"),
    "digest of a file outside": (_meta(HEAD + block("../../etc/passwd", b"")), "not in the package"),
    "weak digest": (_meta(HEAD + block(SCRIPT, b"x", "MD5")), "unknown or too weak"),
    "unknown digest": (_meta(HEAD + f"\nName: {SCRIPT}\nAlgorithm: CRC\nHash: 00\n"), "unknown or too weak"),
    "hash without algorithm": (_meta(HEAD + f"\nName: {SCRIPT}\nHash: 00\n"), "come together"),
    "artifact outside without a digest": (
        _meta(HEAD + "\nSource: https://files.example/chart.tgz\nContent-Type: application/gzip\n"),
        "outside of the package and has no digest",
    ),
    "artifact outside with half a digest": (
        _meta(HEAD + "\nSource: https://files.example/chart.tgz\nHash: 00\n"),
        "come together",
    ),
    "artifact outside with a weak digest": (
        _meta(HEAD + f"\nSource: https://files.example/chart.tgz\nAlgorithm: MD5\nHash: {'0' * 32}\n"),
        "unknown or too weak",
    ),
    "artifact outside with a digest of another length": (
        _meta(HEAD + "\nSource: https://files.example/chart.tgz\nAlgorithm: SHA-256\nHash: 00\n"),
        "64 hexadecimal digits",
    ),
    "absent manifest": (_meta(HEAD + "ETSI-Entry-Manifest: a.mf\n"), "not in the package"),
    "two root VNFDs": (lambda: {"a.yaml": b"a: 1", "b.yaml": b"a: 1"}, "exactly one YAML file"),
    "absent signature of a file": (
        _meta(HEAD + f"\nName: {SCRIPT}\nSignature: absent.cms\n"),
        "not in the package",
    ),
}
VNFDS: dict[str, tuple[Builder, str]] = {
    "import by URL": (_import("https://example.org/types.yaml"), "is not in the package"),
    "import of a file URL": (_import("file:///etc/passwd"), "is not in the package"),
    "import of an absolute path": (_import("/etc/passwd"), "absolute path"),
    "import from outside": (_import("../../etc/passwd"), "leads out of the package"),
    "import of an absent file": (_import("absent.yaml"), "is not in the package"),
    "import from a repository": (_import("{file: a.yaml, repository: r}"), "from a repository"),
    "no flavour": (_yaml("tosca_definitions_version: tosca_simple_yaml_1_2"), "no flavour"),
    "no product": (_vnfd("        product_name: Sample\n", ""), "no product_name"),
    "artifact file outside": (_vnfd("../Scripts/install.sh", "../../../etc/passwd"), "not in the package"),
    "artifact file absent": (_vnfd("../Scripts/install.sh", "../Scripts/absent.sh"), "not in the package"),
    "CP bound to unknown VDU": (_vnfd("virtual_binding: worker", "virtual_binding: nobody"), "bound to the VDU"),
    "CP bound to nothing": (_vnfd("        - virtual_binding: worker\n", ""), "bound to no VDU"),
    "CP on unknown link": (_vnfd("virtual_link: net", "virtual_link: nowhere"), "on the virtual link"),
    "VDU with unknown storage": (_vnfd("virtual_storage: disk", "virtual_storage: tape"), "uses the storage"),
    "fewest above most": (_vnfd("min_number_of_instances: 1", "min_number_of_instances: 9"), "at least 9"),
    "a billion instances": (_vnfd("max_number_of_instances: 5", "max_number_of_instances: 1000000000"), "between 0"),
    "negative count": (_vnfd("min_number_of_instances: 1", "min_number_of_instances: -1"), "between 0"),
    "count that is text": (_vnfd("min_number_of_instances: 1", "min_number_of_instances: some"), "whole number"),
    "size that is none": (_vnfd("10 GB", "10 parsecs"), "not a size"),
    "count with two signs": (
        _vnfd("min_number_of_instances: 1", "min_number_of_instances: '--5'"),
        "is not a whole number",
    ),
    "count with two different signs": (
        _vnfd("min_number_of_instances: 1", "min_number_of_instances: '+-5'"),
        "is not a whole number",
    ),
    "signed count of 19 digits": (
        _vnfd("min_number_of_instances: 1", f"min_number_of_instances: '+00{'9' * 19}'"),
        "has 19 digits; it must be between 0",
    ),
    "count of 5,000 digits": (
        _vnfd("min_number_of_instances: 1", f"min_number_of_instances: {'9' * 5000}"),
        "has 5000 digits; it must be between 0",
    ),
    "count that is a fraction": (
        _vnfd("min_number_of_instances: 1", "min_number_of_instances: 1.5"),
        "is 1.5; it must be a whole number",
    ),
    "size of 5,000 digits": (_vnfd("10 GB", f"{'9' * 5000} GB"), "is larger than"),
    "number of 5,000 digits with a tag": (
        _vnfd("min_number_of_instances: 1", f"min_number_of_instances: !!int {'9' * 5000}"),
        "The number has 5000 digits",
    ),
    "VDU of a type that does not exist": (
        _vnfd("type: tosca.nodes.nfv.Vdu.Compute", "type: tosca.nodes.nfv.Vdu.Computer"),
        "'worker', whose type 'tosca.nodes.nfv.Vdu.Computer' is not that of a VDU",
    ),
    "VDU of a foreign type": (
        _vnfd("type: tosca.nodes.nfv.Vdu.Compute", "type: vendor.Machine"),
        "'worker', whose type 'vendor.Machine' is not that of a VDU",
    ),
    "storage of a type that does not exist": (
        _vnfd("type: tosca.nodes.nfv.Vdu.VirtualBlockStorage", "type: tosca.nodes.nfv.Vdu.Disk"),
        "whose type 'tosca.nodes.nfv.Vdu.Disk' is not that of a storage",
    ),
    "virtual link of a type that does not exist": (
        _vnfd("type: tosca.nodes.nfv.VnfVirtualLink", "type: tosca.nodes.nfv.Link"),
        "whose type 'tosca.nodes.nfv.Link' is not that of a virtual link",
    ),
    "container of a type that does not exist": (
        _vnfd(
            "  groups:\n",
            "    pod: {type: tosca.nodes.nfv.Vdu.OsContainerDeployableUnit, "
            "requirements: [{container: cp}]}\n  groups:\n",
        ),
        "whose type 'tosca.nodes.nfv.VduCp' is not that of a container",
    ),
    "node without a type": (
        _vnfd("      type: tosca.nodes.nfv.Vdu.Compute\n", ""),
        "'worker', which has no type",
    ),
    "no VDU": (_yaml(_only("VNF")), "no VDU"),
    "no VDU, but a node that looks like one": (
        _yaml(_only("VNF", "worker").replace("Vdu.Compute", "Vdu.Computer")),
        "no VDU; passed over: worker (tosca.nodes.nfv.Vdu.Computer)",
    ),
    "flavour without a VDU beside one with VDUs": (
        lambda: {
            **varied("etsi_nfv_sol001_vnfd_types.yaml", "empty.yaml"),
            "Definitions/empty.yaml": b"topology_template: {substitution_mappings: {properties: {flavour_id: empty}}}",
        },
        "flavour 'empty' has no VDU",
    ),
    "no VNF node": (_yaml(_only("worker", "disk", "cp", "net")), "no VNF node"),
    "VNF node in an imported file only": (
        lambda: {
            **varied("\n    VNF:\n", "\n    Vnf:\n"),
            META: b"Entry-Definitions: top.yaml\n",
            "top.yaml": b"tosca_definitions_version: tosca_simple_yaml_1_2\nimports: [Definitions/vnfd.yaml]\n",
        },
        "no VNF node",
    ),
    "descriptor_id that is a path": (
        _vnfd("b1bb0ce7-ebca-4fa7-95ed-4840d70a1177", "../../etc/passwd"),
        "descriptor_id",
    ),
    "descriptor_id that is a name": (_vnfd("b1bb0ce7-ebca-4fa7-95ed-4840d70a1177", "my-vnfd"), "is not a GUID"),
    "descriptor_id with braces": (
        _vnfd("b1bb0ce7-ebca-4fa7-95ed-4840d70a1177", "'{b1bb0ce7-ebca-4fa7-95ed-4840d70a1177}'"),
        "is not a GUID",
    ),
    "TOSCA version that does not exist": (
        _vnfd("tosca_simple_yaml_1_2", "tosca_simple_yaml_9_9"),
        "'tosca_simple_yaml_9_9' is not a TOSCA version",
    ),
    "TOSCA version of an imported file that does not exist": (
        lambda: {
            **varied("etsi_nfv_sol001_vnfd_types.yaml", "types.yaml"),
            "Definitions/types.yaml": b"tosca_definitions_version: heat_template_version\n",
        },
        "'heat_template_version' is not a TOSCA version",
    ),
    "no TOSCA version": (
        _vnfd("tosca_definitions_version: tosca_simple_yaml_1_2\n", ""),
        "no tosca_definitions_version",
    ),
    "type derived from itself": (
        _types("company.provider.VNF: {derived_from: company.provider.VNF}"),
        "company.provider.VNF -> company.provider.VNF",
    ),
    "types derived from each other": (
        _types("a: {derived_from: b}, b: {derived_from: c}, c: {derived_from: a}"),
        "derived from itself: a -> b -> c -> a",
    ),
    "types derived without end": (
        _types(", ".join(f"t{n}: {{derived_from: t{n + 1}}}" for n in range(40))),
        "derived over more than 32",
    ),
    "VDU that depends on itself": (_depending("worker: worker"), "worker -> worker"),
    "VDUs that depend on each other": (
        _depending("worker: one", "one: two", "two: worker"),
        "depend on each other in a circle: worker -> one -> two -> worker",
    ),
    "VDU that depends on something absent": (
        _depending("worker: nobody"),
        "depends on 'nobody', which is not declared",
    ),
    "network that is none": (_vnfd("10.0.0.0/24", "10.0.0.0/99"), "not a network"),
    "delta without a number": (_vnfd("one: {number_of_instances: 1}", "one: {}"), "says nothing of the step 'one'"),
    "delta missing for a step": (
        _vnfd("step_deltas: [one]", "step_deltas: [one, two, one]"),
        "says nothing of the step 'two'",
    ),
    "unknown default level": (_vnfd("default_level: small", "default_level: tiny"), "default_level 'tiny'"),
    "level above the highest": (_vnfd("scale_level: 2", "scale_level: 4"), "above its max_scale_level"),
    "initial count above the most": (
        _vnfd("initial_delta: {number_of_instances: 1}", "initial_delta: {number_of_instances: 6}"),
        "but has at most 5",
    ),
    "node_templates that are a list": (_yaml("topology_template: {node_templates: [a]}"), "not a mapping"),
    "topology that is text": (_yaml("topology_template: text"), "not a mapping"),
    "flavours without ids": (
        lambda: {
            **varied("etsi_nfv_sol001_vnfd_types.yaml", "again.yaml"),
            "Definitions/again.yaml": b"topology_template: {node_templates: {v: {type: tosca.nodes.nfv.Vdu.Compute}}}",
        },
        "gives no flavour_id",
    ),
    "two flavours without ids": (
        lambda: {
            **varied("etsi_nfv_sol001_vnfd_types.yaml", "a.yaml\n  - b.yaml"),
            **dict.fromkeys(
                ("Definitions/a.yaml", "Definitions/b.yaml"),
                b"topology_template: {node_templates: {v: {type: tosca.nodes.nfv.Vdu.Compute}}}",
            ),
        },
        "gives no flavour_id",
    ),
    "flavour described twice": (
        lambda: {
            **varied("etsi_nfv_sol001_vnfd_types.yaml", "again.yaml"),
            "Definitions/again.yaml": VNFD_TEXT.encode(),
        },
        "described twice",
    ),
    "more nodes than are read": (
        _yaml("topology_template: {node_templates: {" + ", ".join(f"n{n}: {{}}" for n in range(301)) + "}}"),
        "more than 300 nodes",
    ),
}
