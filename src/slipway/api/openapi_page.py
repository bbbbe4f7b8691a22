"""The OpenAPI document as a page to read: plain HTML that asks for nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

Json = dict[str, Any]

_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
details { border: 1px solid #8884; border-radius: 4px; margin: .3rem 0; padding: .3rem .7rem }
summary { cursor: pointer; font-family: ui-monospace, monospace; overflow-wrap: anywhere }
table { border-collapse: collapse; margin: .4rem 0; width: 100% }
th, td { border-top: 1px solid #8884; padding: .2rem .6rem .2rem 0; text-align: left; vertical-align: top }
b.method { display: inline-block; width: 4.5rem }
"""


def make_page(document: Json) -> str:
    info = document["info"]
    title = f"{info['title']} {info['version']}"
    return "\n".join((
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        '<p>The same for programs: <a href="/schema">OpenAPI</a>. Send a token as <code>X-Auth-Token</code> '
        "or <code>Authorization: Bearer</code>.</p>",
        *_sections(document),
        "<h2>Types</h2>",
        *(_type(name, schema) for name, schema in document["components"]["schemas"].items()),
        "</body></html>",
    ))  # fmt: skip


def _sections(document: Json) -> Iterator[str]:
    for tag in document["tags"]:
        yield f"<h2>{escape(tag['name'])}</h2>"
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    yield _operation(path, method, operation)


def _operation(path: str, method: str, operation: Json) -> str:
    parts = [f"<p>{escape(operation['description'])}</p>"]
    if operation["parameters"]:
        rows = (
            (one["name"], one["in"], shown(one["schema"]), escape(one.get("description", "")))
            for one in operation["parameters"]
        )
        parts.append(_table(("parameter", "in", "type", ""), rows))
    if body := operation.get("requestBody"):
        forms = ((media, shown(one.get("schema", {}))) for media, one in body["content"].items())
        parts.append(_table(("body", "type"), forms))
    parts.append(_table(("answer", "", "type"), _answers(operation["responses"])))
    return _folded(f'<b class="method">{escape(method.upper())}</b> {escape(path)}', parts)


def _answers(responses: dict[str, Json]) -> Iterator[tuple[str, ...]]:
    for status, answer in responses.items():
        kinds = [shown(one["schema"]) if "schema" in one else escape(m) for m, one in answer.get("content", {}).items()]
        yield status, escape(answer["description"]), " or ".join(kinds)


def _type(name: str, schema: Json) -> str:
    parts = [f"<p>{escape(schema['description'])}</p>"] if "description" in schema else []
    if "properties" in schema:
        needed = schema.get("required", ())
        rows = (
            (escape(key), shown(one), "mandatory" if key in needed else "") for key, one in schema["properties"].items()
        )
        parts.append(_table(("attribute", "type", ""), rows))
    else:
        parts.append(f"<p>{shown(schema)}</p>")
    return _folded(escape(name), parts, anchor=name)


def shown(schema: Json) -> str:
    """A type in a few words of HTML, with links to those that have a name."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(shown(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(one)) or '(empty)'}</code>" for one in schema["enum"])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if schema.get("type") == "array":
        return f"list of {shown(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        return f"map of {shown(schema['additionalProperties'])}"
    return escape(" ".join(str(schema[key]) for key in ("type", "format") if key in schema) or "anything")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Of cells that are HTML already."""
    names = "".join(f"<th>{name}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{names}</tr>{lines}</table>"


def _folded(summary: str, parts: Iterable[str], anchor: str | None = None) -> str:
    mark = f' id="{escape(anchor)}"' if anchor else ""
    return f"<details{mark}><summary>{summary}</summary>{''.join(parts)}</details>"
