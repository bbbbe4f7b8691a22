"""What a command gets: the server it talks to, and where its answer goes.

`command` adds the options that every command has to its own, and turns errors into one clear line and an exit code.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from slipway.cli.errors import CliError, exit_code
from slipway.cli.output import Format, Output
from slipway.cli.paths import is_local
from slipway.model.errors import SlipwayError

if TYPE_CHECKING:
    import ssl

    import httpx

    from slipway.cli.client import Client

P = ParamSpec("P")
DEFAULT_URL = "http://127.0.0.1:9890"


@dataclass(frozen=True)
class Environment:
    """What tests replace: the network and time."""

    transport: httpx.BaseTransport | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class ServerAddress:
    """Where the server is and what may be said to it, as the command line and the environment name it."""

    url: str = DEFAULT_URL
    token_file: Path | None = None
    data_dir: Path | None = None
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None

    def tls(self) -> ssl.SSLContext | None:
        """None: no option was given, and httpx uses its own."""
        if not self.url.startswith("https:") or not (self.ca_file or self.client_cert or self.client_key):
            return None
        return _client_tls(self.ca_file, self.client_cert, self.client_key)

    def token(self) -> str | None:
        """The token named; or, for a server on this machine, the one it has written down itself.

        The local token never goes to another machine unasked.
        """
        if self.token_file:
            return _read_token(self.token_file)
        if named := os.environ.get("SLIPWAY_TOKEN"):
            return named.strip()
        from slipway.settings import default_data_dir

        made = (self.data_dir or default_data_dir()) / "token"
        # A server without authentication writes none.
        return _read_token(made) if (self.data_dir or is_local(self.url)) and made.exists() else None


def _client_tls(ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Without a CA the server's certificate must be signed by one that this machine trusts."""
    import ssl

    if key and not certificate:
        raise CliError("--client-key goes with --client-cert; name that, too.")
    for option, path in (("--ca-file", ca), ("--client-cert", certificate), ("--client-key", key)):
        if path is not None and not path.is_file():
            raise CliError(f"{option}: there is no file {path}.")
    try:
        context = ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError):
        raise CliError(f"--ca-file: {ca} holds no certificate; give the CA as PEM.") from None
    if certificate:
        try:
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise CliError(
                f"--client-cert {certificate} does not go with its key ({reason}); give both as PEM."
            ) from None
    return context


def _read_token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"The token can't be read from {path}: {error}.") from None


@dataclass(frozen=True)
class Session:
    server: ServerAddress
    output: Output
    environment: Environment = field(default_factory=Environment)

    @cached_property
    def client(self) -> Client:
        from slipway.cli.client import Client

        return Client(self.server.url, self.server.token(), self.environment.transport, self.server.tls())

    def close(self) -> None:
        if "client" in self.__dict__:
            self.client.close()


Body = Callable[Concatenate[Session, P], int | None]

_OUTPUT = inspect.Parameter(
    "output_format",
    inspect.Parameter.KEYWORD_ONLY,
    default=Format.TABLE,
    annotation=Annotated[Format, typer.Option("--output", "-o", help="How to print the answer.")],
)
_SERVER = (
    inspect.Parameter(
        "url",
        inspect.Parameter.KEYWORD_ONLY,
        default=DEFAULT_URL,
        annotation=Annotated[str, typer.Option("--url", envvar="SLIPWAY_URL", help="Where the server is.")],
    ),
    inspect.Parameter(
        "token_file",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None,
            typer.Option(
                "--token-file", envvar="SLIPWAY_TOKEN_FILE", help="A file with the token; or SLIPWAY_TOKEN itself."
            ),
        ],
    ),
    inspect.Parameter(
        "data_dir",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None,
            typer.Option("--data-dir", envvar="SLIPWAY_DATA_DIR", help="The server's data, where its token is found."),
        ],
    ),
    *(
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                Path | None,
                typer.Option(f"--{name.replace('_', '-')}", envvar=f"SLIPWAY_{name.upper()}", help=help),
            ],
        )
        for name, help in (
            ("ca_file", "The CA that the server's certificate is from."),
            ("client_cert", "A certificate to show to the server."),
            ("client_key", "Its key, when it is in another file."),
        )
    ),
)
COMMON = frozenset({"output_format", *(option.name for option in _SERVER)})


def command(
    app: typer.Typer, name: str, *, example: str, local: bool = False, formats: bool = True
) -> Callable[[Body[P]], Body[P]]:
    """A command of `app`, with `-o` if its answer has `formats`, and how to find the server unless it is `local`.

    The body answers its exit code; none is 0.
    """

    def register(body: Body[P]) -> Body[P]:
        def run(ctx: typer.Context, **given: Any) -> None:
            output = Output(given.pop("output_format", Format.TABLE))
            server = ServerAddress() if local else ServerAddress(**{one.name: given.pop(one.name) for one in _SERVER})
            environment = ctx.obj if isinstance(ctx.obj, Environment) else Environment()
            _run(body, Session(server, output, environment), given)

        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        shared = ((_OUTPUT,) if formats else ()) + (() if local else _SERVER)
        keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
        signature = inspect.Signature([context, *keyword_only, *shared])
        vars(run)["__signature__"] = signature
        run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
        run.__doc__ = body.__doc__
        app.command(name, epilog=f"\b\nExample:\n  {example}")(run)
        return body

    return register


def _run(body: Callable[..., int | None], session: Session, given: dict[str, Any]) -> None:
    try:
        code = body(session, **given)
        sys.stdout.flush()  # a reader who has gone is noticed here, not while Python ends
    except SlipwayError as error:
        session.output.error(error)
        code = exit_code(error)
    finally:
        session.close()
    raise typer.Exit(code or 0)
