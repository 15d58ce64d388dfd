"""Principals, role members, permissions."""

from __future__ import annotations

from collections.abc import Iterator

from mssql_sandbox.catalog.definitions import Scope, view
from mssql_sandbox.engine.storage.policies import policies

_KINDS = {"S": "SQL_USER", "R": "DATABASE_ROLE"}
_SERVER_ROLES = ("sysadmin", "securityadmin", "serveradmin", "setupadmin", "processadmin", "diskadmin", "dbcreator",
                 "bulkadmin")  # fmt: skip
_FIRST_SERVER_ROLE = 3


def _server_principals(scope: Scope) -> Iterator[tuple]:
    server = scope.server
    for login in server.logins.values():
        yield (
            login.name,
            login.principal_id,
            login.sid,
            "S",
            "SQL_LOGIN",
            int(login.disabled),
            login.create_date,
            login.create_date,
            login.default_database,
            "us_english",
            0,
        )
    start = server.start_time
    for number, name in enumerate(("public", *_SERVER_ROLES), _FIRST_SERVER_ROLE - 1):
        sid = number.to_bytes(1, "big")
        yield (name, number, sid, "R", "SERVER_ROLE", 0, start, start, None, None, int(name != "public"))


def _server_role_members(scope: Scope) -> Iterator[tuple]:
    for login in scope.server.logins.values():
        for number, role in enumerate(_SERVER_ROLES, _FIRST_SERVER_ROLE):
            if role in {name.casefold() for name in login.server_roles}:
                yield (number, login.principal_id)


def _database_principals(scope: Scope) -> Iterator[tuple]:
    for principal in scope.database.principals.values():
        login = scope.server.logins.get(principal.login) if principal.login else None
        yield (
            principal.name,
            principal.principal_id,
            principal.type_code,
            _KINDS.get(principal.type_code, "SQL_USER"),
            principal.default_schema,
            principal.create_date,
            principal.create_date,
            1 if principal.type_code == "R" else None,
            login.sid if login is not None else None,
            int(principal.fixed_role),
            0 if principal.type_code == "R" or login is None else 1,
            "NONE" if principal.type_code == "R" or login is None else "INSTANCE",
        )


def _role_members(scope: Scope) -> Iterator[tuple]:
    for principal in scope.database.principals.values():
        for name in sorted(principal.member_of):
            role = scope.database.principals.get(name)
            if role is not None:
                yield (role.principal_id, principal.principal_id)


_CLASSES = {
    "DATABASE": (0, "DATABASE"),
    "OBJECT": (1, "OBJECT_OR_COLUMN"),
    "COLUMN": (1, "OBJECT_OR_COLUMN"),
    "SCHEMA": (3, "SCHEMA"),
}


_CODES = {
    "ALTER": "AL", "CONNECT": "CO", "CONTROL": "CL", "CREATE SCHEMA": "CRSM", "CREATE TABLE": "CRTB",
    "CREATE VIEW": "CRVW", "CREATE PROCEDURE": "CRPR", "DELETE": "DL", "EXECUTE": "EX", "INSERT": "IN",
    "REFERENCES": "RF", "SELECT": "SL", "SHOWPLAN": "SPLN", "TAKE OWNERSHIP": "TO", "UNMASK": "UMSK", "UPDATE": "UP",
    "VIEW CHANGE TRACKING": "VWCT", "VIEW DATABASE PERFORMANCE STATE": "VDP", "VIEW DATABASE SECURITY STATE": "VDSS",
    "VIEW DATABASE STATE": "VWDS", "VIEW DEFINITION": "VW",
}  # fmt: skip
"""Types of permissions as the catalogue shows them [doc]."""


def _permissions(scope: Scope) -> Iterator[tuple]:
    database = scope.database
    for principal in database.principals.values():
        for state, permission, kind, target in principal.permissions:
            number, description = _CLASSES[kind]
            major = minor = 0
            schema, _, name = target.partition(".")
            if kind == "COLUMN":
                name, _, column_name = name.rpartition(".")
                table = database.table(schema, name)
                column = table.column(column_name) if table is not None else None
                minor = column.column_id if column is not None else 0
            if kind in ("OBJECT", "COLUMN"):
                item = database.find(schema, name)
                major = item.object_id if item is not None else 0
            elif kind == "SCHEMA":
                found = database.schemas.get(target)
                major = found.schema_id if found is not None else 0
            yield (
                number,
                description,
                major,
                minor,
                principal.principal_id,
                _CODES.get(permission, permission[:2]).ljust(4),
                permission,
                state[0],
                state,
            )


def _policies(scope: Scope) -> Iterator[tuple]:
    for item in policies(scope.database):
        policy = item.definition
        flags = (int(policy.enabled), int(not policy.for_replication), 1, int(not policy.schema_bound))
        place = (item.name, item.object_id, item.schema.schema_id)
        yield (*place, item.create_date, item.modify_date, *flags)


def _predicates(scope: Scope) -> Iterator[tuple]:
    for item in policies(scope.database):
        for one in item.definition.predicates:
            yield (item.object_id, one.number, one.table.object_id, one.text)


VIEWS = (
    view(
        "sys.security_policies",
        "name sysname, object_id int, principal_id int? = NULL, schema_id int, parent_object_id int = 0, "
        "type varchar(2) = 'SP', type_desc nvarchar(60)? = 'SECURITY_POLICY', create_date datetime, "
        "modify_date datetime, is_ms_shipped bit = 0, is_enabled bit, is_not_for_replication bit, "
        "uses_database_collation bit?, is_schemabinding_enabled bit?",
        _policies,
    ),
    view(
        "sys.security_predicates",
        "object_id int, security_predicate_id int, target_object_id int, predicate_definition nvarchar(max)?, "
        "predicate_type int? = 0, predicate_type_desc nvarchar(60)? = 'FILTER', operation int? = NULL, "
        "operation_desc nvarchar(60)? = NULL",
        _predicates,
    ),
    view(
        "sys.server_principals",
        "name sysname, principal_id int, sid varbinary(85)?, type char(1), type_desc nvarchar(60)?, is_disabled bit?, "
        "create_date datetime, modify_date datetime, default_database_name sysname?, default_language_name sysname?, "
        "credential_id int? = NULL, owning_principal_id int? = NULL, is_fixed_role bit",
        _server_principals,
    ),
    view("sys.server_role_members", "role_principal_id int, member_principal_id int", _server_role_members),
    view(
        "sys.database_principals",
        "name sysname, principal_id int, type char(1), type_desc nvarchar(60)?, default_schema_name sysname?, "
        "create_date datetime, modify_date datetime, owning_principal_id int?, sid varbinary(85)?, is_fixed_role bit, "
        "authentication_type int, authentication_type_desc nvarchar(60)?, default_language_name sysname? = NULL, "
        "default_language_lcid int? = NULL, allow_encrypted_value_modifications bit = 0",
        _database_principals,
    ),
    view("sys.database_role_members", "role_principal_id int, member_principal_id int", _role_members),
    view(
        "sys.database_permissions",
        "class tinyint, class_desc nvarchar(60)?, major_id int, minor_id int, grantee_principal_id int, "
        "grantor_principal_id int = 1, type char(4), permission_name nvarchar(128)?, state char(1), "
        "state_desc nvarchar(60)?",
        _permissions,
    ),
)
