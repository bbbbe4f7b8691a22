"""A login to Keystone v3 by keystoneauth, and what went wrong with it in words that help: a 401 has three causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.model.errors import OutgoingRequestError, VimError, VimFault
from slipway.outgoing.responses import server_message
from slipway.vim.openstack.account import OpenStackAccount
from slipway.vim.openstack.errors import message_of, vim_error

if TYPE_CHECKING:
    from keystoneauth1.access import AccessInfo
    from keystoneauth1.exceptions import HttpError
    from keystoneauth1.session import Session


def log_in(account: OpenStackAccount, session: Session) -> AccessInfo:
    """The session's token, which is fetched or renewed if need be."""
    from keystoneauth1 import exceptions as keystone

    plugin: Any = session.auth
    try:
        access: AccessInfo = plugin.get_access(session)
        _ = access.expires, access.service_catalog.normalize_catalog()
    except keystone.Unauthorized as error:
        raise _not_known(account, session, error) from None
    except keystone.MissingAuthMethods:
        raise VimError(
            f"Keystone at {account.url} wants more of {account.who} than a password.",
            VimFault.AUTH,
            cure="make an application credential, and give its id and secret.",
        ) from None
    except (keystone.NotFound, keystone.MethodNotAllowed) as error:
        raise _no_keystone(account, f"the answer was {error.http_status}") from None
    except keystone.HttpError as error:
        raise _refused(account, error) from None
    except keystone.InvalidResponse as error:
        where = server_message(error.response.headers.get("location"))
        why = f"the answer was {error.response.status_code}" + (f", with {where}" if where else "")
        raise _no_keystone(account, why) from None
    except (keystone.ClientException, OutgoingRequestError) as error:
        raise vim_error(f"POST {account.url}/auth/tokens", error, account.secrets) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):  # keystoneauth trusts what it is told
        raise _no_keystone(account, "its answer holds no token") from None
    _refuse_other_project(account, access)
    return access


def _refuse_other_project(account: OpenStackAccount, access: AccessInfo) -> None:
    if account.named_project is None:
        return
    name, value = account.named_project
    has = access.project_id if name == "projectId" else access.project_name
    if value != has:
        raise VimError(
            f"Keystone at {account.url}: {account.who} is one of project {server_message(access.project_name)!r} "
            f"({server_message(access.project_id)}), and accessInfo.{name} names another.",
            VimFault.AUTH,
            cure=f"leave out accessInfo.{name}, or make an application credential in the project that is meant.",
        )


def _not_known(account: OpenStackAccount, session: Session, first: HttpError) -> VimError:
    """401 may mean a wrong password or a wrong project. A login without a project tells them apart."""
    if account.scope is not None and (names := _projects(account, session)) is not None:
        return VimError(
            f"Keystone at {account.url} knows {account.who}, but gives no access to project {account.project!r}.",
            VimFault.AUTH,
            cure=f"accessInfo.project must be one of: {', '.join(names[:10]) or 'none'}.",
        )
    return VimError(
        f"Keystone at {account.url} does not let {account.who} in: 401 {_message(account, first)}.",
        VimFault.AUTH,
        cure="correct the name, its domain, and the password or secret.",
    )


def _projects(account: OpenStackAccount, session: Session) -> list[str] | None:
    """Those that the user has; None when the user is not known either."""
    from keystoneauth1.exceptions import ClientException

    try:
        listed = session.get(f"{account.url}/auth/projects", auth=account.plugin(scoped=False)).json()["projects"]
        return [server_message(project["name"]) for project in listed]
    except (ClientException, OutgoingRequestError, LookupError, TypeError, ValueError, RecursionError):
        return None


def _refused(account: OpenStackAccount, error: HttpError) -> VimError:
    detail = f"Keystone at {account.url} answered {error.http_status}: {_message(account, error)}."
    if error.http_status == 403:
        return VimError(detail, VimFault.AUTH, cure="let Keystone's policy allow the login.")
    if error.http_status == 429 or error.http_status >= 500:
        return VimError(detail, VimFault.TEMPORARY)
    return VimError(detail, VimFault.PERMANENT, cure="correct the attribute that is named.")


def _no_keystone(account: OpenStackAccount, why: str) -> VimError:
    return VimError(
        f"There is no Keystone v3 at {account.url}: {why}.",
        VimFault.PERMANENT,
        cure="give Keystone's own URL as interfaceInfo.endpoint, such as https://host:5000/v3 or https://host/identity/v3.",
    )


def _message(account: OpenStackAccount, error: HttpError) -> str:
    return server_message(message_of(error), account.secrets) or "no reason given"
