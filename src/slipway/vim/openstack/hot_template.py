"""A HOT of a package: the top template with all files that it uses, read from untrusted text.

A template comes from whoever made the package, and Heat works on it as the operator. Heat itself would fetch whatever
URL stands for a type, so types are Heat's own or files of the package, and nothing may be computed in their place. What
Heat's own types may do (users, quotas, stacks in another region) is for Heat's policy to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from posixpath import dirname
from secrets import token_hex
from typing import Any, NoReturn

import msgspec

from slipway.model.errors import PackageError
from slipway.package.limits import DEFAULT_LIMITS
from slipway.package.yaml_reader import YamlMap, read_yaml

NESTED = "nested"
SERVER, VOLUME, ATTACHMENT = "OS::Nova::Server", "OS::Cinder::Volume", "OS::Cinder::VolumeAttachment"
PORT, NETWORK, SUBNET = "OS::Neutron::Port", "OS::Neutron::Net", "OS::Neutron::Subnet"
SERVER_GROUP, FLOATING_IP = "OS::Nova::ServerGroup", "OS::Neutron::FloatingIP"
GROUP, CHAIN, STACK = "OS::Heat::AutoScalingGroup", "OS::Heat::ResourceChain", "OS::Heat::Stack"
MEMBER_OF = {GROUP: "resource", "OS::Heat::ResourceGroup": "resource_def"}  # where groups say what a member is
INDEX = "%index%"  # of a ResourceGroup's member, unless index_var says something else
HEAT_TYPE = re.compile(r"OS(::[A-Za-z0-9]+){2,}")
FILE_TYPES = (".yaml", ".template")  # ends of types that are files to Heat; any other is one of its own, or none


class _Use(Enum):
    """What a template uses a name as: a type, the template of an OS::Heat::Stack, or the content of some property."""

    TYPE = "type"
    TEMPLATE = "template"
    CONTENT = "content"


class BaseHot(msgspec.Struct, frozen=True, kw_only=True):
    """`files`: the path of each other file of the package that the templates use, by the name they have for it."""

    path: str
    template: dict[str, Any]
    files: dict[str, str]
    nested: dict[str, dict[str, Any]]  # those of the files that are templates, by the same names

    @property
    def resources(self) -> dict[str, Any]:
        return resources_of(self.template)


def read_base_hot(path: str, contents: Mapping[str, bytes]) -> BaseHot:
    """`contents`: the package's files by path. PackageError says which file is wrong, where, and the cure."""
    template, allowance = _template(path, contents[path], DEFAULT_LIMITS.yaml_nodes)
    files: dict[str, str] = {}
    nested: dict[str, dict[str, Any]] = {}
    pending = list(_references(template, path))
    while pending:
        name, use, user = pending.pop()
        files[name] = _path_of(name, dirname(path), contents, user)
        if use is _Use.TYPE and not name.endswith(FILE_TYPES):
            _refuse(
                f"The file of the type {name!r} is no template to Heat.", user, None, "let its name end with .yaml."
            )
        if use is not _Use.CONTENT and name not in nested:
            nested[name], allowance = _template(files[name], contents[files[name]], allowance)
            pending += _references(nested[name], files[name])
    return BaseHot(path=path, template=template, files=dict(sorted(files.items())), nested=nested)


def calls(value: Any, function: str) -> Iterator[Any]:
    """The arguments of all calls of an intrinsic function."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            if len(one) == 1 and function in one:
                yield one[function]
            pending += one.values()
        elif isinstance(one, list):
            pending += one


def resources_of(template: dict[str, Any]) -> dict[str, Any]:
    return template.get("resources") or {}


def properties_of(resource: dict[str, Any]) -> dict[str, Any]:
    properties = resource.get("properties")
    return properties if isinstance(properties, dict) else {}


def _template(path: str, content: bytes, allowance: int) -> tuple[dict[str, Any], int]:
    """The template, and how many YAML values may still be read."""
    document = read_yaml(content, path, nodes=allowance)
    root = document.root
    if not isinstance(root.get("heat_template_version"), str):
        _refuse("It has no heat_template_version.", path, root, "begin with one, such as 2021-04-16.")
    for section in ("parameters", "resources"):
        entries = root.get(section) or {}
        if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
            _refuse(f"Its {section} are not a mapping of mappings.", path, root, "write them as a HOT has them.")
    for name, resource in resources_of(root).items():
        if not isinstance(resource.get("type"), str):
            _refuse(f"The resource {name!r} has no type.", path, resource, "give it one.")
        if resource["type"] == SERVER and "external_id" in resource:  # it would be stopped and removed as a VNFC's
            _refuse(
                f"The server {name!r} has an external_id.", path, resource, "let the stack make it, or leave it out."
            )
        needed = resource.get("depends_on", [])
        if not all(isinstance(one, str) for one in (needed if isinstance(needed, list) else [needed])):
            _refuse(f"depends_on of the resource {name!r} is no name, nor a list of them.", path, resource, "write so.")
    return root, allowance - document.nodes


def _references(template: dict[str, Any], path: str) -> Iterator[tuple[str, _Use, str]]:
    """Files that a template uses: by which name, as what, and by which file."""
    for name, resource in resources_of(template).items():
        for used, use in _types(resource, name, path):
            if use is not _Use.TYPE or not HEAT_TYPE.fullmatch(used):
                yield used, use, path
    for file in calls(template, "get_file"):
        if not isinstance(file, str):
            _refuse("get_file is not given a file's name.", path, file, "write the name of a file of the package.")
        yield file, _Use.CONTENT, path


def _types(resource: dict[str, Any], name: str, path: str) -> Iterator[tuple[str, _Use]]:
    """The type of a resource, and those of what it is a group, a chain or a stack of."""
    type_, properties = resource["type"], properties_of(resource)
    yield type_, _Use.TYPE
    if type_ in MEMBER_OF:
        member = properties.get(MEMBER_OF[type_])
        if not isinstance(member, dict) or not isinstance(member.get("type"), str):
            _refuse(f"The resource {name!r} has no {MEMBER_OF[type_]} with a type.", path, resource, "write it out.")
        _refuse_index(properties, member["type"], name, path)
        yield from _types(member, name, path)
    elif type_ == CHAIN:
        chain = properties.get("resources")
        if not isinstance(chain, list) or not all(isinstance(one, str) for one in chain):
            _refuse(f"The resource {name!r} does not list its types.", path, resource, "write them out.")
        # All have the same properties, and may be groups, chains or stacks themselves. Each type once: chains of
        # chains of chains would be gone through without end.
        for one in dict.fromkeys(chain):
            yield from _types({"type": one, "properties": properties.get("resource_properties")}, name, path)
    elif type_ == STACK:
        sources = [source for source in calls([properties.get("template")], "get_file") if isinstance(source, str)]
        if properties.get("template") not in [{"get_file": source} for source in sources]:
            _refuse(f"The template of the resource {name!r} is no file.", path, resource, "get it by get_file.")
        yield from ((source, _Use.TEMPLATE) for source in sources)


def _refuse_index(properties: dict[str, Any], type_: str, name: str, path: str) -> None:
    """A ResourceGroup puts the member's number wherever this stands, in the type as well."""
    index = properties.get("index_var", INDEX)
    if not isinstance(index, str):
        _refuse(f"index_var of the resource {name!r} is no string.", path, properties, "write it out.")
    if index and index in type_:
        _refuse(f"The type {type_!r} of the resource {name!r} has {index} in it.", path, properties, "write it out.")


def _path_of(name: str, folder: str, contents: Mapping[str, bytes], user: str) -> str:
    """Templates say bare names, of files in `nested` or beside the top template."""
    for path in (f"{folder}/{NESTED}/{name}", f"{folder}/{name}"):
        if path in contents:
            return path
    raise PackageError(
        f"It uses {name[:200]!r}, which is neither one of Heat's types (OS::...) nor a file in {folder}/{NESTED}.",
        file=user,
        cure="add the file, or correct the name; nothing is fetched from elsewhere.",
    )


def _refuse(what: str, path: str, place: Any, cure: str) -> NoReturn:
    raise PackageError(what, file=path, line=place.line if isinstance(place, YamlMap) else None, cure=cure)


def touch_groups(template: dict[str, Any], names: Iterable[str]) -> None:
    """Make the definition of these groups' members new to Heat, without another meaning.

    Heat remembers what a group was before an update that failed. Told just that again, it finds nothing new, and leaves
    the member that failed with what made it fail.
    """
    for name in names:
        group = resources_of(template).get(name, {})
        member = group.get("properties", {}).get("resource") if group.get("type") == GROUP else None
        if isinstance(member, dict):
            member["metadata"] = {**(member.get("metadata") or {}), "slipway_touched": token_hex(8)}
