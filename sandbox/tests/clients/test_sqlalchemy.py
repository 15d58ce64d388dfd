"""SQLAlchemy's mssql+pyodbc dialect: reflection, DDL, ORM with OUTPUT, transactions, fast_executemany."""

import datetime as dt
import decimal
import urllib.parse
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc, orm
from sqlalchemy.dialects import mssql

from mssql_sandbox.process import SandboxProcess
from tests.tds.drivers import DRIVERS, driver

pytestmark = pytest.mark.timeout(300)


class Base(orm.DeclarativeBase):
    pass


class Shop(Base):
    __tablename__ = "shops"
    __table_args__ = (
        sa.UniqueConstraint("code", name="uq_shops_code"),
        sa.CheckConstraint("size > 0", name="ck_shops_size"),
        {"comment": "where things are sold", "schema": "sales"},
    )
    id: orm.Mapped[int] = orm.mapped_column(sa.Identity(start=100, increment=10), primary_key=True)
    code: orm.Mapped[str] = orm.mapped_column(sa.String(10), comment="short name")
    size: orm.Mapped[int] = orm.mapped_column(server_default=sa.text("1"))
    opened: orm.Mapped[dt.datetime | None] = orm.mapped_column(sa.DateTime)
    items: orm.Mapped[list["Item"]] = orm.relationship(back_populates="shop", cascade="all, delete-orphan")


class Item(Base):
    __tablename__ = "items"
    __table_args__ = (sa.Index("ix_items_name", "name", "price"), {"schema": "sales"})
    id: orm.Mapped[uuid.UUID] = orm.mapped_column(sa.Uuid, primary_key=True, default=uuid.uuid4)
    shop_id: orm.Mapped[int] = orm.mapped_column(
        sa.ForeignKey("sales.shops.id", name="fk_items_shop", ondelete="CASCADE")
    )
    name: orm.Mapped[str] = orm.mapped_column(sa.Unicode(40))
    price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(9, 2))
    picture: orm.Mapped[bytes | None] = orm.mapped_column(sa.LargeBinary)
    shop: orm.Mapped[Shop] = orm.relationship(back_populates="items")


@pytest.fixture(params=DRIVERS)
def engine(request: pytest.FixtureRequest, separate_sandbox: SandboxProcess) -> Iterator[sa.Engine]:
    """An engine over one of the ODBC drivers; its tables exist, empty.

    The server is a process of its own: pyodbc keeps Python waiting while it asks for the types of parameters.
    """
    text = driver(request.param).connection_string(separate_sandbox.port, password=separate_sandbox.password)
    # pyodbc's fast_executemany crashes FreeTDS: it is Microsoft's driver's alone.
    made = sa.create_engine(
        "mssql+pyodbc:///?odbc_connect=" + urllib.parse.quote_plus(text), fast_executemany=request.param != "FreeTDS"
    )
    with made.begin() as connection:
        connection.execute(sa.text("IF SCHEMA_ID('sales') IS NULL EXEC ('CREATE SCHEMA sales')"))
    Base.metadata.drop_all(made)
    Base.metadata.create_all(made)
    yield made
    Base.metadata.drop_all(made)
    made.dispose()


def test_inspector_sees_what_was_created(engine: sa.Engine) -> None:
    seen = sa.inspect(engine)
    assert {"items", "shops"} <= set(seen.get_table_names("sales"))
    assert "sales" in seen.get_schema_names()
    assert seen.get_pk_constraint("shops", "sales")["constrained_columns"] == ["id"]
    keys = seen.get_foreign_keys("items", "sales")
    assert [(key["name"], key["constrained_columns"], key["referred_table"], key.get("options")) for key in keys] == [
        ("fk_items_shop", ["shop_id"], "shops", {"ondelete": "CASCADE"})
    ]
    indexes = {index["name"]: index["column_names"] for index in seen.get_indexes("items", "sales")}
    assert indexes == {"ix_items_name": ["name", "price"]}
    assert seen.has_table("shops", "sales")
    assert not seen.has_table("nothing", "sales")


def test_inspector_sees_columns_with_types_identity_defaults_and_comments(engine: sa.Engine) -> None:
    columns: dict[str, Any] = {column["name"]: column for column in sa.inspect(engine).get_columns("shops", "sales")}
    identity = columns["id"]["identity"]
    assert (identity["start"], identity["increment"]) == (100, 10)
    assert isinstance(columns["code"]["type"], sa.VARCHAR)
    assert columns["code"]["type"].length == 10
    assert columns["code"]["comment"] == "short name"
    assert columns["size"]["default"].strip("()") == "1"
    assert columns["opened"]["nullable"]
    assert sa.inspect(engine).get_table_comment("shops", "sales") == {"text": "where things are sold"}
    prices: dict[str, Any] = {c["name"]: c for c in sa.inspect(engine).get_columns("items", "sales")}
    price = prices["price"]["type"]
    assert (price.precision, price.scale) == (9, 2)


def test_reflected_tables_are_the_declared_ones(engine: sa.Engine) -> None:
    found = sa.MetaData()
    found.reflect(engine, schema="sales")
    items = found.tables["sales.items"]
    assert [column.name for column in items.columns] == ["id", "shop_id", "name", "price", "picture"]
    assert isinstance(items.c.id.type, mssql.UNIQUEIDENTIFIER)
    assert next(iter(items.c.shop_id.foreign_keys)).column is found.tables["sales.shops"].c.id


def test_view_definitions_are_reflected(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE OR ALTER VIEW sales.names AS SELECT code FROM sales.shops"))
    seen = sa.inspect(engine)
    assert "names" in seen.get_view_names("sales")
    assert "SELECT code FROM sales.shops" in seen.get_view_definition("names", "sales")
    with engine.begin() as connection:
        connection.execute(sa.text("DROP VIEW sales.names"))


def test_orm_gets_identities_and_defaults_back(engine: sa.Engine) -> None:
    """INSERT with OUTPUT inserted.id, many rows with insertmanyvalues."""
    with orm.Session(engine) as session:
        shops = [Shop(code=f"s{n}", items=[Item(name="\u4e2d", price=decimal.Decimal("9.99"))]) for n in range(5)]
        session.add_all(shops)
        session.commit()
        assert [shop.id for shop in shops] == [100, 110, 120, 130, 140]
        assert shops[0].size == 1
    with orm.Session(engine) as session:
        found = session.scalars(sa.select(Shop).options(orm.selectinload(Shop.items)).order_by(Shop.id)).all()
        assert [(shop.code, [(item.name, item.price) for item in shop.items]) for shop in found] == [
            (f"s{n}", [("\u4e2d", decimal.Decimal("9.99"))]) for n in range(5)
        ]
        session.delete(found[0])
        found[1].opened = dt.datetime(2024, 2, 29, 12, 30)  # noqa: DTZ001 - the column has no time zone
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Item)) == 4
        page = sa.select(Shop.code).order_by(Shop.id).offset(1).limit(2)
        assert session.scalars(page).all() == ["s2", "s3"]


def test_many_rows_are_inserted_with_their_types(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        shop = connection.execute(sa.insert(Shop).returning(Shop.id), {"code": "x"}).scalar_one()
        rows = [
            {
                "id": uuid.UUID(int=n),
                "shop_id": shop,
                "name": f"n{n}",
                "price": decimal.Decimal(n) / 4,
                "picture": b"\0\1" * n,
            }
            for n in range(200)
        ]
        connection.execute(sa.insert(Item), rows)
    with engine.connect() as connection:
        found = connection.execute(sa.select(Item.__table__).order_by(Item.price)).mappings().all()
    assert [dict(row) for row in found] == rows


def test_constraint_errors_are_sqlalchemys_integrity_errors(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.execute(sa.insert(Shop), {"code": "a"})
        with pytest.raises(exc.IntegrityError, match="uq_shops_code"):
            connection.execute(sa.insert(Shop), {"code": "a"})
        with pytest.raises(exc.IntegrityError, match="ck_shops_size"):
            connection.execute(sa.insert(Shop), {"code": "b", "size": 0})
        connection.rollback()
        assert connection.scalar(sa.select(sa.func.count()).select_from(Shop)) == 0


def test_savepoints_and_isolation_levels(engine: sa.Engine) -> None:
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        assert connection.get_isolation_level() == "SERIALIZABLE"
        with connection.begin():
            connection.execute(sa.insert(Shop), {"code": "kept"})
            inner = connection.begin_nested()
            connection.execute(sa.insert(Shop), {"code": "undone"})
            inner.rollback()
        assert connection.scalars(sa.select(Shop.code)).all() == ["kept"]
