"""Packages that must be refused, by name, each with the reason that must be given."""

from __future__ import annotations

import stat
import struct
from collections.abc import Callable, Mapping

from tests.unit.package.csars import (
    HEAD,
    META,
    SCRIPT,
    VNFD,
    VNFD_TEXT,
    Raw,
    block,
    deflated,
    raw_members,
    raw_zip,
    valid_files,
    varied,
    with_member,
    zipped,
)

Builder = Callable[[], Mapping[str, bytes] | bytes]
MIB = 1024 * 1024
UTF8 = 0x0800
ANY = b"whatever"


def _named(name: str) -> Builder:
    flags = 0 if name.isascii() else UTF8
    return lambda: with_member(Raw(name.encode(), ANY, flags=flags))


def _twins(one: str, other: str) -> Builder:
    return lambda: raw_zip(
        [*raw_members(valid_files()), Raw(one.encode(), ANY, flags=UTF8), Raw(other.encode(), ANY, flags=UTF8)]
    )


def _special(kind: int) -> Builder:
    return lambda: with_member(Raw(b"Scripts/special", b"/etc/passwd", mode=kind | 0o777))


def _member(member: Raw) -> Builder:
    return lambda: with_member(member)


def _zip64_contradiction() -> bytes:
    data = zipped(valid_files())
    end = data[-22:]
    count, size, offset = struct.unpack("<HLL", end[10:20])
    record_at = len(data) - 22
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count - 1, count - 1, size, offset)
    return data[:-22] + record + struct.pack("<4sLQL", b"PK\x06\x07", 0, record_at, 1) + end


def _directory_at(moved: Callable[[int], int]) -> bytes:
    """Said to be elsewhere than it is."""
    data = zipped(valid_files())
    (offset,) = struct.unpack("<L", data[-6:-2])
    return data[:-6] + struct.pack("<L", moved(offset)) + data[-2:]


def _behind_directory() -> bytes:
    data = zipped(valid_files())
    return data[:-22] + ANY + data[-22:]


def _before_directory() -> bytes:
    data = zipped(valid_files())
    _, offset = struct.unpack("<2L", data[-10:-2])
    return data[:offset] + ANY + data[offset:-6] + struct.pack("<L", offset + len(ANY)) + data[-2:]


def _overlapping() -> bytes:
    members = raw_members(valid_files())
    twin = Raw(b"Scripts/other.sh", members[0].data, offset=0)
    return raw_zip([*members, twin])


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


NAMES: dict[str, tuple[Builder, str]] = {
    "path traversal": (_named("../evil"), "climbs out"),
    "path traversal in the middle": (_named("Scripts/../../evil"), "climbs out"),
    "absolute name": (_named("/etc/passwd"), "absolute path"),
    "backslash": (_named("Scripts\\evil"), "backslash"),
    "drive name": (_named("C:evil"), "drive letter"),
    "empty part": (_named("Scripts//evil"), "empty or '.' part"),
    "dot part": (_named("./evil"), "empty or '.' part"),
    "newline in a name": (_named("Scripts/a\nb"), "control or invisible"),
    "NUL in a name": (_named("Scripts/a.sh\0.txt"), "control or invisible"),
    "escape sequence in a name": (_named("Scripts/\x1b[2J"), "control or invisible"),
    "right-to-left override in a name": (_named("Scripts/\u202egpj.sh"), "control or invisible"),
    "overlong name": (_named("a/" * 600), "longer than 1024"),
    "too many parts": (_named("a/" * 40 + "b"), "more than 32 parts"),
    "overlong part": (_named("a" * 300), "longer than 255"),
    "empty name": (_named(""), "is empty"),
    "name in an unknown charset": (_member(Raw(b"Scripts/\xff", ANY)), "neither ASCII nor marked UTF-8"),
    "name that is broken UTF-8": (
        _member(Raw(b"Scripts/\xff", ANY, flags=UTF8)),
        "marked UTF-8, but is not valid UTF-8",
    ),
    "second name": (
        _member(Raw(b"a.txt", ANY, extra=struct.pack("<2HBL", 0x7075, 10, 1, 0) + b"b.txt")),
        "second, different name",
    ),
    "duplicate": (_twins("Scripts/a", "Scripts/a"), "in the package twice"),
    "names that differ by case": (_twins("Scripts/A", "Scripts/a"), "by case or spelling only"),
    "names that differ by Unicode form": (_twins("Scripts/\u00e9", "Scripts/e\u0301"), "by case or spelling only"),
    "names that differ by ligature": (_twins("Scripts/\ufb01le", "Scripts/file"), "by case or spelling only"),
    "file and directory of one name": (_twins("Scripts/a", "Scripts/a/b"), "which is a file"),
}

ARCHIVES: dict[str, tuple[Builder, str]] = {
    "symbolic link": (_special(stat.S_IFLNK), "symbolic link"),
    "character device": (_special(stat.S_IFCHR), "special file"),
    "named pipe": (_special(stat.S_IFIFO), "special file"),
    "encrypted member": (_member(Raw(b"secret", ANY, flags=1)), "encrypted"),
    "unknown compression": (_member(Raw(b"a.lzma", ANY, method=14, size=8, crc=0)), "compression method 14"),
    "compression bomb": (
        lambda: zipped({**valid_files(), "Files/zeros.img": bytes(32 * MIB)}),
        "more than 200 times",
    ),
    "too large in total": (
        lambda: raw_zip(
            raw_members(valid_files()) + [Raw(b"Files/%d" % n, ANY, method=8, size=0xFFFFFFF0, crc=0) for n in range(6)]
        ),
        "unpacks to more than",
    ),
    "too many members": (
        lambda: raw_zip([Raw(b"Files/%d" % number) for number in range(10_001)]),
        "10001 members",
    ),
    "member larger than declared": (
        _member(Raw(b"a", deflated(b"x" * 5000), method=8, size=100, crc=0)),
        "more data than it declares",
    ),
    "member smaller than declared": (
        _member(Raw(b"a", deflated(b"x" * 50), method=8, size=100, crc=0)),
        "less data than it declares",
    ),
    "stored member with two sizes": (_member(Raw(b"a", ANY, size=100, crc=0)), "sizes contradict"),
    "wrong ZIP checksum": (_member(Raw(b"a", ANY, crc=1)), "ZIP checksum"),
    "broken compression": (_member(Raw(b"a", b"\xff\xff\xff", method=8, size=9, crc=0)), "can't be inflated"),
    "compression that breaks off": (
        _member(Raw(b"a", deflated(b"abc" * 500)[:-4], method=8, size=1500, crc=0)),
        "can't be inflated",
    ),
    "data behind the compressed stream": (
        _member(Raw(b"a", deflated(b"abc") + b"hidden", method=8, size=3, crc=0x352441C2)),
        "behind the end",
    ),
    "directory with content": (_member(Raw(b"Files/", b"content")), "directory has content"),
    "overlapping members": (_overlapping, "overlaps another member"),
    "member whose own header has another name": (
        _member(Raw(b"Scripts/a.sh", ANY, local_name=b"Scripts/b.sh")),
        "another name in its own header",
    ),
    "member whose own header has another size": (_member(Raw(b"a", ANY, local_size=9)), "other sizes"),
    "member whose header lies beyond the end": (
        _member(Raw(b"a", ANY, offset=10**9)),
        "said to begin at byte 1000000000, behind all members",
    ),
    "member without a header of its own": (
        lambda: zipped(valid_files()).replace(b"PK\x03\x04", b"PK\x00\x00", 1),
        "has no header where the table of contents says",
    ),
    "table of contents beyond the end": (lambda: _directory_at(lambda offset: offset + 10**6), "beyond the end"),
    "table of contents said to be before its place": (
        lambda: _directory_at(lambda offset: 0),
        "before its first member",
    ),
    "data behind the table of contents": (_behind_directory, "between its table of contents and its end record"),
    "broken row in the table of contents": (
        lambda: zipped(valid_files()).replace(b"PK\x01\x02", b"PK\x00\x00", 1),
        "row 1 of the archive's table of contents is malformed",
    ),
    "members that reach into the table of contents": (
        lambda: raw_zip([*raw_members(valid_files()), Raw(b"z", ANY, packed=60, size=60, crc=0)]),
        "overlaps the table of contents",
    ),
    "data before the table of contents": (_before_directory, "between its last member and its table of contents"),
    "data before the first member": (lambda: ANY + zipped(valid_files()), "data before its first member"),
    "data before the first member, offsets adjusted": (
        lambda: raw_zip(raw_members(valid_files()), prefix=ANY),
        "belongs to no member",
    ),
    "data after the end": (lambda: zipped(valid_files()) + ANY, "data follows its end"),
    "data between members": (_member(Raw(b"a", ANY, before=b"hidden")), "belongs to no member"),
    "part of a multi-disk set": (lambda: raw_zip(raw_members(valid_files()), disk=1), "multi-disk"),
    "member on another disk": (_member(Raw(b"a", ANY, disk=3)), "multi-disk"),
    "second archive in the comment": (
        lambda: raw_zip(raw_members(valid_files()), comment=zipped(valid_files())),
        "more than one end record",
    ),
    "second end record in the comment": (
        lambda: raw_zip(raw_members(valid_files()), comment=b"PK\x05\x06" + bytes(18)),
        "more than one end record",
    ),
    "table of contents shorter than counted": (
        lambda: raw_zip(raw_members(valid_files()), count=9),
        "shorter than it claims",
    ),
    "table of contents longer than counted": (
        lambda: raw_zip(raw_members(valid_files()), count=1),
        "more members than it counts",
    ),
    "contradicting ZIP64 record": (_zip64_contradiction, "contradict each other"),
    "missing ZIP64 sizes": (_member(Raw(b"a", ANY, size=0xFFFFFFFF, crc=0)), "ZIP64 sizes are missing"),
    "malformed extra field": (_member(Raw(b"a", ANY, extra=b"\x01\x00\xff\x00ab")), "extra fields are malformed"),
    "truncated archive": (lambda: zipped(valid_files())[:-30], "breaks off"),
    "front cut off": (lambda: zipped(valid_files())[30:], "beyond the end"),
    "empty file": (lambda: b"", "not a ZIP archive"),
    "text file": (lambda: b"hello\n" * 100, "not a ZIP archive"),
    "empty archive": (lambda: raw_zip([]), "neither TOSCA-Metadata"),
    "CSAR in a ZIP without a signature": (lambda: zipped({"a.csar": zipped(valid_files())}), "0 signature files"),
    "two CSARs in a ZIP": (
        lambda: zipped({"a.csar": zipped(valid_files()), "b.csar": zipped(valid_files()), "a.cms": ANY}),
        "2 CSAR",
    ),
}

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
    "deltas for unknown aspect": (_vnfd("aspect: out", "aspect: sideways"), "scaling aspect 'sideways'"),
    "delta missing for a step": (_vnfd("one: {number", "two: {number"), "says nothing of the step 'one'"),
    "unknown default level": (_vnfd("default_level: small", "default_level: tiny"), "default_level 'tiny'"),
    "level of unknown aspect": (_vnfd("big: {scale_info: {out:", "big: {scale_info: {up:"), "aspect 'up'"),
    "level above the highest": (_vnfd("scale_level: 2", "scale_level: 4"), "above its max_scale_level"),
    "count for unknown level": (_vnfd("big: {number", "huge: {number"), "level 'huge'"),
    "initial count above the most": (
        _vnfd("initial_delta: {number_of_instances: 1}", "initial_delta: {number_of_instances: 6}"),
        "but has at most 5",
    ),
    "rule for unknown target": (_vnfd("[all_workers]", "[nobody]"), "neither declared nor"),
    "placement group with unknown member": (_vnfd("members: [worker]", "members: [nobody]"), "neither declared nor"),
    "policy for unknown VDU": (
        _vnfd(
            "{number_of_instances: 1}\n        targets: [worker]\n    - deltas",
            "{number_of_instances: 1}\n        targets: [nobody]\n    - deltas",
        ),
        "for the VDU 'nobody'",
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

HOSTILE = {**NAMES, **ARCHIVES, **YAMLS, **METAS, **VNFDS}
