"""The HTTP API as the command line calls it: one class, the transport injected.

Only this file knows HTTP. Of the addresses the server answers with, just the ids and queries are used, so that the
token goes nowhere but where the caller said.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import typer

from slipway import __version__
from slipway.cli.errors import CliError, NotAllowed, NotReachable, Refused
from slipway.cli.paths import is_local

_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_UPLOAD_TIMEOUT = httpx.Timeout(600.0, connect=5.0)


@dataclass(frozen=True)
class Response:
    body: Any
    etag: str | None = None
    location: str | None = None
    query: Mapping[str, str] | None = None  # of the next page
    unchanged: bool = False

    @property
    def made(self) -> str:
        """The id of what the Location header names."""
        if not self.location:
            raise CliError("The server accepted the request but does not say where to look at it.")
        return urlsplit(self.location).path.rstrip("/").rpartition("/")[2]


class Client:
    def __init__(
        self,
        url: str,
        token: str | None = None,
        transport: httpx.BaseTransport | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.url = _checked(url)
        headers = {"Accept": "application/json", "User-Agent": f"slipway/{__version__}"}
        if token:
            headers["X-Auth-Token"] = token
        try:
            self._http = httpx.Client(
                base_url=self.url,
                headers=headers,
                timeout=_TIMEOUT,
                transport=transport,
                verify=tls
                or url.startswith("https:"),  # reading certificates takes time that plain HTTP need not spend
                trust_env=not is_local(url),  # no proxy stands between a machine and itself
            )
        except UnicodeEncodeError:
            raise CliError("The token has characters in it that no token has.") from None

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, query: Mapping[str, str] | None = None, *, etag: str | None = None) -> Response:
        """With `etag`: unchanged when the server still has what it had then."""
        return self._send("GET", path, query=query, headers={"If-None-Match": etag} if etag else {})

    def post(self, path: str, body: object = None) -> Response:
        return self._send("POST", path, body=body)

    def put(self, path: str, body: object) -> Response:
        return self._send("PUT", path, body=body)

    def patch(self, path: str, body: object, *, etag: str | None = None) -> Response:
        return self._send("PATCH", path, body=body, headers={"If-Match": etag} if etag else {})

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def pages(self, path: str, query: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
        """All entries of a list, page after page."""
        while True:
            answer = self.get(path, query)
            yield from answer.body
            if not answer.query or answer.query == query:
                return
            query = answer.query

    def upload(self, path: str, file: Path) -> None:
        with file.open("rb") as content:
            headers = {"Content-Type": "application/zip"}
            self._send("PUT", path, content=content, headers=headers, timeout=_UPLOAD_TIMEOUT)

    def download(self, path: str, target: Path) -> int:
        """The number of bytes written. What breaks off leaves no file behind."""
        part = target.with_name(target.name + ".part")
        try:
            with (
                self._translated(),
                part.open("wb") as file,
                self._http.stream("GET", path, headers={"Accept": "application/zip"}) as response,
            ):
                if response.is_error:
                    response.read()
                    raise self._error(response)
                size = sum(file.write(chunk) for chunk in response.iter_bytes())
            part.replace(target)
        except OSError as error:
            raise CliError(f"{target} can't be written: {error.strerror}.") from None
        finally:
            part.unlink(missing_ok=True)
        return size

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
        content: Any = None,
        timeout: httpx.Timeout = _TIMEOUT,
    ) -> Response:
        headers = dict(headers or {})
        if path.startswith("/vnflcm/v2"):
            headers["Version"] = "2.0.0"
        with self._translated():
            response = self._http.request(
                method, path, params=query, headers=headers, json=body, content=content, timeout=timeout
            )
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return Response(None, etag=response.headers.get("ETag"), unchanged=True)
        if not response.is_success:
            raise self._error(response)
        return Response(
            _document(response) if response.content else None,
            etag=response.headers.get("ETag"),
            location=response.headers.get("Location"),
            query=_next_query(response),
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException:
            raise NotReachable(f"The server at {self.url} did not answer in time. Is it very busy?") from None
        except httpx.TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise NotReachable(
                    f"The certificate of the server at {self.url} is not trusted ({error}). "
                    "Name the CA of its certificate with --ca-file or SLIPWAY_CA_FILE."
                ) from None
            if self.url.startswith("https:") and not isinstance(error, httpx.ConnectError):
                raise NotReachable(
                    f"The server at {self.url} ended the connection ({error}). "
                    "If it asks for certificates, show one with --client-cert and --client-key."
                ) from None
            raise NotReachable(
                f"No Slipway answers at {self.url} ({error}). "
                "Start one with `slipway serve`, or name another with --url or SLIPWAY_URL."
            ) from None

    def _error(self, response: httpx.Response) -> Refused:
        problem = _problem(response)
        if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            return NotAllowed(
                problem,
                "Name the server's token with --token-file or SLIPWAY_TOKEN, or its data directory with --data-dir.",
            )
        return Refused(problem)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and httpx.URL(url).host:
            return url.rstrip("/")
    except (ValueError, httpx.InvalidURL):
        pass
    raise typer.BadParameter(f"{url!r} is not a URL such as http://127.0.0.1:9890.", param_hint="--url")


def _document(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        raise CliError(f"What answers at {response.url} is not Slipway: it sent no JSON.") from None


def _problem(response: httpx.Response) -> dict[str, Any]:
    nothing = f"The server answered {response.status_code} {response.reason_phrase} and does not say why."
    problem: dict[str, Any] = {"status": response.status_code, "detail": nothing}
    try:
        sent = response.json()
    except ValueError:
        return problem
    return problem | sent | {"status": response.status_code} if isinstance(sent, dict) else problem


def _next_query(response: httpx.Response) -> dict[str, str] | None:
    link = response.links.get("next")
    return dict(parse_qsl(urlsplit(link["url"]).query, keep_blank_values=True)) if link else None
