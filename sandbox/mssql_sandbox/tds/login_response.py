"""The answer to LOGIN7: acceptance or refusal."""

from mssql_sandbox.engine.collation import Collation
from mssql_sandbox.errors import SqlError
from mssql_sandbox.tds import tokens
from mssql_sandbox.tds.collations import collation_bytes
from mssql_sandbox.tds.login import FEATURE_UTF8, TDS_7_4, Login
from mssql_sandbox.tds.packets import DEFAULT_PACKET_SIZE
from mssql_sandbox.tds.prelogin import DEFAULT_VERSION
from mssql_sandbox.tds.tokens import DoneStatus, DoneToken, EnvironmentType

PROGRAM_NAME = "Microsoft SQL Server"
LANGUAGE = "us_english"
LOGIN_FAILED = 18456


def login_accepted(
    login: Login, *, database: str, server_name: str, collation: Collation | None, version: bytes = DEFAULT_VERSION
) -> bytes:
    """The tokens that drivers expect after a successful login."""
    parts = [
        tokens.environment_text(EnvironmentType.DATABASE, database, "master"),
        tokens.message(5701, 2, 0, f"Changed database context to '{database}'.", server=server_name),
        tokens.environment_bytes(EnvironmentType.COLLATION, collation_bytes(collation), b""),
        tokens.environment_text(EnvironmentType.LANGUAGE, LANGUAGE, ""),
        tokens.message(5703, 1, 0, f"Changed language setting to {LANGUAGE}.", server=server_name),
        tokens.login_acknowledged(min(login.tds_version, TDS_7_4), PROGRAM_NAME, version),
        tokens.environment_text(
            EnvironmentType.PACKET_SIZE, str(login.negotiated_packet_size), str(DEFAULT_PACKET_SIZE)
        ),
    ]
    if FEATURE_UTF8 in login.features:
        # Drivers treat an acknowledgement they did not request as a protocol error.
        parts.append(tokens.features_acknowledged({FEATURE_UTF8: b"\x01"}))
    parts.append(tokens.done(DoneToken.DONE, DoneStatus.FINAL))
    return b"".join(parts)


def login_refused(login: Login, reason: SqlError, *, server_name: str) -> bytes:
    """The reason, followed by 18456 if the reason is another error (4060: no such database)."""
    messages = [(reason.number, reason.state, reason.severity, reason.message)]
    if reason.number != LOGIN_FAILED:
        messages.append((LOGIN_FAILED, 1, 14, f"Login failed for user '{login.user}'."))
    return b"".join(
        tokens.message(number, state, severity, text, server=server_name) for number, state, severity, text in messages
    ) + tokens.done(DoneToken.DONE, DoneStatus.ERROR)
