"""The page at /schema/page: complete, harmless, and made of text."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from slipway.api.openapi_page import make_page
from slipway.store.database import Database
from tests.unit.api.world import a_world

pytestmark = pytest.mark.sqlite_suffices


async def test_the_page_lists_every_route_and_runs_nothing(database: Database, tmp_path: Path) -> None:
    async with a_world(database, tmp_path) as world:
        browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        answer = await world.client.get("/schema/page", headers={"Accept": browser})
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; ")
        assert answer.headers["x-content-type-options"] == "nosniff"
        page = Page(answer.text)
        document = (await world.client.get("/schema")).json()
        for path, methods in document["paths"].items():
            for method in methods:
                assert f"{method.upper()} {path}" in page.summaries
        assert page.tags.isdisjoint({"script", "img", "link", "iframe", "form", "base"})
        assert page.local <= {f"#{one}" for one in page.ids}, "a link leads nowhere"
        assert page.links - page.local == {"/schema"}


def test_the_page_shows_text_as_text() -> None:
    evil = "<script>alert(1)</script>\"'"
    schema = {"description": evil, "properties": {evil: {"enum": [evil]}}, "required": []}
    operation = {"tags": [evil], "description": evil, "parameters": [], "responses": {"200": {"description": evil}}}
    document = {
        "info": {"title": evil, "version": evil},
        "tags": [{"name": evil}],
        "paths": {f"/{evil}": {"get": operation}},
        "components": {"schemas": {evil: schema}},
    }
    assert "script" not in Page(make_page(document)).tags


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.summaries: set[str] = set()
        self._summary: str | None = None
        self.feed(text)
        self.close()
        self.local = {link for link in self.links if link.startswith("#")}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        if href := given.get("href"):
            self.links.add(href)
        if name := given.get("id"):
            self.ids.add(name)
        if tag == "summary":
            self._summary = ""

    def handle_data(self, data: str) -> None:
        if self._summary is not None:
            self._summary += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "summary" and self._summary is not None:
            self.summaries.add(self._summary)
            self._summary = None
