"""A chart of a repository, fetched by Slipway itself: only where the guard allows, within bounds, by its digest.

Helm never sees the repository: its own client follows redirects anywhere, and knows nothing of allowed networks.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from slipway.model.errors import OutgoingRequestError, PackageError, Unprocessable, VimError, VimFault
from slipway.outgoing.guard import Guard
from slipway.outgoing.responses import read_limited, server_message
from slipway.package.limits import DEFAULT_LIMITS
from slipway.package.yaml_reader import read_yaml
from slipway.vim.kubernetes.helm.chart import Chart, checked, unpacked
from slipway.vim.kubernetes.helm.parameters import CHARTS, HelmParameters, Repository

if TYPE_CHECKING:
    import httpx

LARGEST_INDEX = 8 << 20  # bytes
LARGEST_CHART = 16 << 20
MOST_VALUES = 1_000_000  # of an index
SECONDS = 60.0  # for one file
REDIRECTS = 3
PACKAGE_IT = "or put the chart into the package."


def refuse_repositories(parameters: HelmParameters, guard: Guard) -> None:
    """What can be known of an address without looking up its name."""
    for at, chart in enumerate(parameters.charts):
        if chart.repository is None:
            continue
        try:
            host = guard.read(chart.repository.url).host
            if host.replace(".", "").isdigit() or ":" in host:
                guard.check_address(host)
        except OutgoingRequestError as error:
            raise Unprocessable(f"additionalParams.{CHARTS}[{at}].exthelmrepo_url: {error.detail}") from None


async def fetch_chart(guard: Guard, repository: Repository) -> Chart:
    """VimError says what came back, and the cure."""
    place = f"{urlsplit(repository.url).netloc}/{repository.chart}-{repository.version}"
    try:
        index = await _fetched(guard, repository, f"{repository.url}/index.yaml", LARGEST_INDEX)
        entry = await asyncio.to_thread(_entry, index, repository)
        url = urljoin(f"{repository.url}/", str(entry["urls"][0]))
        archive = await _fetched(guard, repository, url, LARGEST_CHART)
        digest = str(entry.get("digest") or "").removeprefix("sha256:")
        if digest and sha256(archive).hexdigest() != digest:
            raise _wrong(repository, f"{place} is not the file whose digest its index has", "ask whoever runs it")
        return await asyncio.to_thread(lambda: checked(unpacked(archive, place), place))
    except PackageError as error:
        raise VimError(error.detail, VimFault.PERMANENT) from None


async def _fetched(guard: Guard, repository: Repository, url: str, limit: int) -> bytes:
    import httpx

    home, there = urlsplit(repository.url), urlsplit(url)
    same = (home.scheme, home.netloc) == (there.scheme, there.netloc)
    auth = (repository.username, str(repository.password)) if same and repository.username else None
    try:
        async with (
            asyncio.timeout(SECONDS),
            guard.client(verify=repository.ca or True, auth=auth, redirects=REDIRECTS) as client,
            client.stream("GET", url) as response,
        ):
            _check_status(repository, response)
            return await read_limited(response, limit)
    except OutgoingRequestError as error:
        fault = VimFault.TEMPORARY if error.temporary else VimFault.PERMANENT
        raise VimError(f"The chart repository {home.netloc}: {error.detail}", fault) from None
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
        said = server_message(str(error) or type(error).__name__, [str(repository.password or "")])
        if "CERTIFICATE_VERIFY_FAILED" in said:
            raise _wrong(
                repository,
                f"its certificate is not trusted here ({said})",
                "give the certificate of its authority as PEM in repository_ca",
            ) from None
        raise VimError(
            f"The chart repository {home.netloc} does not answer: {said}.",
            VimFault.TEMPORARY,
            cure=f"see that it can be reached from here, {PACKAGE_IT}",
        ) from None


def _check_status(repository: Repository, response: httpx.Response) -> None:
    status = response.status_code
    if status == 200:
        return
    said = f"GET {response.request.url.path[:200]} was answered with {status}"
    if status in (401, 403):
        raise VimError(
            f"The chart repository {response.request.url.host}: {said}.",
            VimFault.AUTH,
            cure="give repository_username and repository_password, or correct them.",
        )
    if status >= 500 or status == 429:
        raise VimError(f"The chart repository {response.request.url.host}: {said}.", VimFault.TEMPORARY)
    raise _wrong(repository, said, "correct exthelmrepo_url: <exthelmrepo_url>/index.yaml must be its index")


def _entry(index: bytes, repository: Repository) -> dict[str, Any]:
    try:
        entries = read_yaml(index, "index.yaml", DEFAULT_LIMITS, MOST_VALUES).root.get("entries")
    except PackageError as error:
        raise _wrong(repository, f"its index can't be read: {error.detail}", "correct exthelmrepo_url") from None
    versions = entries.get(repository.chart) if isinstance(entries, dict) else None
    if not isinstance(versions, list) or not versions:
        known = ", ".join(str(name)[:100] for name in list(entries)[:10]) if isinstance(entries, dict) else "none"
        raise _wrong(repository, f"it has no chart {repository.chart}; it has: {known}", "correct helmchartname")
    wanted = repository.version.removeprefix("v")
    for entry in versions:
        if isinstance(entry, dict) and str(entry.get("version", "")).removeprefix("v") == wanted:
            urls = entry.get("urls")
            if isinstance(urls, list) and urls and isinstance(urls[0], str):
                return entry
            raise _wrong(repository, f"its index has no URL for {repository.chart} {wanted}", "ask whoever runs it")
    shown = ", ".join(str(one.get("version"))[:40] for one in versions[:10] if isinstance(one, dict))
    raise _wrong(
        repository, f"it has no version {wanted} of {repository.chart}; it has: {shown}", "correct helmchartversion"
    )


def _wrong(repository: Repository, what: str, cure: str) -> VimError:
    host = urlsplit(repository.url).netloc
    return VimError(f"The chart repository {host}: {what}.", VimFault.PERMANENT, cure=f"{cure}, {PACKAGE_IT}")
