"""A stand-in for the API: answers are laid down for each route, requests are kept for looking at afterwards."""

from __future__ import annotations

import json
from typing import Any

import httpx

from slipway.cli.session import Environment

ID = "11111111-2222-4333-8444-555555555555"
OTHER_ID = "99999999-8888-4777-8666-555555555555"


class ScriptedServer:
    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.naps: list[float] = []
        self._answers: dict[str, list[httpx.Response | BaseException]] = {}

    def answer(self, route: str, body: object = None, status: int = 200, **headers: str) -> None:
        """`route` is "GET /path". Several answers are given in turn; the last one stays."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = b"" if body is None else json.dumps(body).encode()
        self._answers.setdefault(route, []).append(httpx.Response(status, content=content, headers=named))

    def refuse(self, route: str, status: int, detail: str) -> None:
        self.answer(route, {"status": status, "title": "No", "detail": detail}, status)

    def breaks(self, route: str, error: BaseException) -> None:
        self._answers.setdefault(route, []).append(error)

    def sent(self, route: str) -> list[Any]:
        """The bodies that came to a route."""
        return [
            json.loads(request.content) if request.content else None
            for request in self.requests
            if f"{request.method} {request.url.path}" == route
        ]

    def environment(self) -> Environment:
        return Environment(
            transport=httpx.MockTransport(self._handle), sleep=self.naps.append, clock=lambda: sum(self.naps)
        )

    def _handle(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answers = self._answers.get(f"{request.method} {request.url.path}")
        if not answers:
            detail = f"There is no {request.url.path}."
            return httpx.Response(404, json={"status": 404, "title": "Not Found", "detail": detail})
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)
