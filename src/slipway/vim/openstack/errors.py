"""What openstacksdk and keystoneauth raise, as a VimError: what was done, what came back, whether to retry, a cure."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slipway.model.errors import OutgoingRequestError, VimError, VimFault
from slipway.outgoing.responses import server_message
from slipway.vim.http import not_reached

if TYPE_CHECKING:
    import requests

log = logging.getLogger(__name__)

QUOTA_WORDS = ("quota", "maximum number of", "limit exceeded", "maximum stacks")  # Nova and Heat say it with a 403
TYPE_FORBIDDEN = re.compile(r"not authorized to use OS::")  # Heat's words for types that are for administrators
NOT_ALLOWED = (
    "the VIM's account may not make it, as volume types or flavors are for administrators: have an administrator make "
    "it and let the template name it; or give the VIM an account that may."
)
_PERMANENT, _TEMPORARY = VimFault.PERMANENT, VimFault.TEMPORARY
# By name: a login, which goes without openstacksdk, must not wait for its import to be explained.
_NOT_IN_CATALOG = {"CatalogException", "EndpointNotFound", "ServiceDisabledException"}
# What these libraries raise when a catalog, a list of versions or a token is not what they take for granted.
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
_NO_VERSIONS = {"DiscoveryFailure", "ServiceDiscoveryException", "NotSupported"}


@contextmanager
def translated_errors(
    what: str,
    secrets: Iterable[str] = (),
    *,
    cure: str | None = None,
    cure_500: str | None = None,
    keystone: str = "the VIM",
) -> Iterator[None]:
    """What is raised inside becomes a VimError, so nothing but calls of these libraries belongs there.

    `what` is what is done: "Reading stack vnf-1"; `cure` is for a request that the server calls wrong, `cure_500` for
    one that it can't do and does not say why; `keystone` is the address whose catalog is used.
    """
    import requests
    from keystoneauth1.exceptions import ClientException
    from openstack.exceptions import SDKException

    try:
        yield
    except (SDKException, ClientException, requests.RequestException, OutgoingRequestError) as error:
        raise vim_error(what, error, secrets, cure, cure_500) from None
    except _UNREADABLE as error:
        kind = type(error).__name__
        log.warning("%s: %s in openstacksdk", what, kind, exc_info=(Exception, Exception(kind), error.__traceback__))
        raise VimError(
            f"{what}: openstacksdk can't make sense ({kind}) of what {keystone} or a service of its catalog answered.",
            _TEMPORARY,
            cure="see that the catalog leads to the services themselves, and that they answer as they should.",
        ) from None


def vim_error(
    what: str, error: Exception, secrets: Iterable[str] = (), cure: str | None = None, cure_500: str | None = None
) -> VimError:
    """Of whatever these libraries, and the guard below them, raise. Secrets in a server's message are left out."""
    if isinstance(error, OutgoingRequestError):
        return VimError(f"{what}: {error.detail}", _TEMPORARY if error.temporary else _PERMANENT)
    if (answer := _answer(error)) is not None:
        return _refused(what, *answer, secrets, cure_500 if answer[0] == 500 else cure)
    if (sent := _request_error(error)) is not None:
        return not_reached(what, _host(sent.request.url if sent.request else None), sent)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    fault, cure = _TEMPORARY if "ResourceTimeout" in kinds else _PERMANENT, None
    if kinds & _NOT_IN_CATALOG:
        cure = "have it added to Keystone's catalog, or correct accessInfo.region and accessInfo.interface."
    elif kinds & _NO_VERSIONS:  # what a service that is down looks like to keystoneauth
        fault, cure = _TEMPORARY, "see that the service runs at the address that Keystone's catalog has for it."
    return VimError(f"{what}: {server_message(str(error), secrets) or type(error).__name__}.", fault, cure=cure)


def _answer(error: Any) -> tuple[int, str, str] | None:
    """Status, host, message: of keystoneauth's HttpError or openstacksdk's HttpException."""
    status = getattr(error, "http_status", None) or getattr(error, "status_code", None)
    return (status, _host(error.url), message_of(error)) if status else None


def message_of(error: Any) -> str:
    """A server's own words: keystoneauth puts status and request id behind them."""
    return str(error.details or error.message or "").partition(" (HTTP ")[0]


def _refused(what: str, status: int, host: str, message: str, secrets: Iterable[str], cure: str | None) -> VimError:
    message = server_message(message, secrets) or "no reason given"
    detail = f"{what}: {host} answered {status}: {message}."
    if status == 413 or (status in (403, 409) and any(word in message.lower() for word in QUOTA_WORDS)):
        return VimError(detail, VimFault.QUOTA, cure="raise the quota of the project, or remove what it has too much.")
    if status == 401:
        return VimError(detail, VimFault.AUTH, cure="correct the account's accessInfo; the VIM's check says more.")
    if status == 403 and TYPE_FORBIDDEN.search(message):
        return VimError(detail, VimFault.AUTH, cure=NOT_ALLOWED)
    if status == 403:
        return VimError(detail, VimFault.AUTH, cure="give the account the role in its project that this needs.")
    if status in (408, 409, 423, 425, 429) or status >= 500:
        return VimError(detail, _TEMPORARY, cure=cure if status == 500 else None)
    return VimError(detail, _PERMANENT, cure=cure)


def _request_error(error: BaseException | None) -> requests.RequestException | None:
    """The error of `requests` below that of keystoneauth: it knows the address and, as its cause, why."""
    from requests import RequestException

    for _ in range(10):
        if error is None or isinstance(error, RequestException):
            return error
        error = error.__cause__ or error.__context__
    return None


def _host(url: str | None) -> str:
    return urlsplit(url or "").netloc or "the VIM"
