"""A workload that continuously changes the sample database through a real ODBC driver.

It produces every kind of change that a capture must get right, each recognizable in the lake (`evidence.py`).
`database.sql` defines the sample database itself.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

import pyodbc

MOVED = "MOVED-"
ROLLED_BACK = "GHOST-"
LARGE_TEXT = 20_000
EPOCH = dt.datetime(2027, 1, 1)  # noqa: DTZ001 (datetime2 has no zone)
ADD_COLUMN_AFTER = 150
LOG_SIGNAL_AFTER = 100
SNAPSHOT_SIGNAL_AFTER = 300


@dataclass
class Workload:
    """Runs transactions in a thread until stopped; `counts` is the number of commits of each kind.

    Signals and the new column wait until `streaming` is set; otherwise the snapshot would hide them.
    """

    connection_string: str
    pause_seconds: float = 0.02
    seed: int = 20261121
    counts: Counter[str] = field(default_factory=Counter[str])
    error: BaseException | None = None
    streaming: threading.Event = field(default_factory=threading.Event)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; `error` holds an error of the thread, and `stop` raises it."""
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current transaction."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(30)
        if self.error is not None:
            raise self.error

    @property
    def transactions(self) -> int:
        """The number of transactions committed so far."""
        return self.counts.total() - self.counts["rollback"]

    def _run(self) -> None:
        try:
            connection = pyodbc.connect(self.connection_string, autocommit=False)
            try:
                shop = _Shop(connection, random.Random(self.seed))  # noqa: S311 (a repeatable workload)
                self._loop(shop)
            finally:
                connection.close()
        except BaseException as error:  # noqa: BLE001 (kept for the main thread)
            self.error = error

    def _loop(self, shop: _Shop) -> None:
        kinds: list[tuple[str, Callable[[], None]]] = [
            ("order", shop.place_order),
            ("payment", shop.pay),
            ("status", shop.change_status),
            ("null", shop.clear_notes),
            ("key change", shop.move_product),
            ("delete", shop.cancel_lines),
            ("large text", shop.write_document),
            ("measurement", shop.measure),
            ("customer", shop.touch_customer),
            ("log entry", shop.log_entry),
            ("rollback", shop.change_of_mind),
        ]
        milestones: dict[int, tuple[str, Callable[[], None]]] = {
            LOG_SIGNAL_AFTER: ("log signal", shop.signal_log),
            ADD_COLUMN_AFTER: ("add column", shop.add_column),
            SNAPSHOT_SIGNAL_AFTER: ("snapshot signal", shop.signal_snapshot),
        }
        streamed = 0
        for kind, action in itertools.cycle(kinds):
            if self._stop.wait(self.pause_seconds):
                return
            streamed += self.streaming.is_set()
            if streamed in milestones:
                milestone, act = milestones.pop(streamed)
                act()
                self.counts[milestone] += 1
            action()
            self.counts[kind] += 1


@dataclass
class _Shop:
    """One method per kind of change; each ends its own transaction."""

    connection: pyodbc.Connection
    chance: random.Random
    _next: itertools.count[int] = field(default_factory=lambda: itertools.count(1_000_001))
    _open: list[int] = field(default_factory=list[int])
    _has_column: bool = False

    def _execute(self, sql: str, *parameters: object) -> None:
        self.connection.execute(sql, *parameters)

    def place_order(self) -> None:
        number = next(self._next)
        self._execute(
            "INSERT INTO sales.orders (id, customer_id, status, ordered_at, note) "
            "VALUES (?, ?, 0, SYSDATETIMEOFFSET(), ?)",
            number, self.chance.randint(1, 20_000), f"note {number} – grüße",
        )  # fmt: skip
        for line in range(1, self.chance.randint(2, 4)):
            self._execute(
                "INSERT INTO sales.order_lines VALUES (?, ?, ?, ?, ?)",
                number, line, f"SKU-{self.chance.randint(1, 2000)}", self.chance.randint(1, 9), Decimal("9.99"),
            )  # fmt: skip
            self._execute("UPDATE dbo.products SET stock = stock - 1 WHERE sku = ? AND stock > 0", "SKU-7")
        self.connection.commit()
        self._open.append(number)

    def pay(self) -> None:
        self._execute(
            "INSERT INTO sales.payments (id, order_id, amount, fee, paid_at, booked_on, reference) "
            "VALUES (?, ?, ?, ?, GETDATE(), GETDATE(), ?)",
            str(uuid.UUID(int=self.chance.getrandbits(128))), self._any_order(), Decimal("123.4567890123"),
            Decimal("0.0100"), "R1",
        )  # fmt: skip
        self._execute("UPDATE sales.orders SET status = 1 WHERE id = ?", self._any_order())
        self.connection.commit()

    def change_status(self) -> None:
        first = self.chance.randint(1, 59_000)
        self._execute(
            "UPDATE sales.orders SET status = (status + 1) % 5, note = N'bulk' WHERE id BETWEEN ? AND ?",
            first,
            first + 9,
        )
        self.connection.commit()

    def clear_notes(self) -> None:
        self._execute("UPDATE sales.orders SET note = NULL WHERE id = ?", self._any_order())
        self.connection.commit()

    def move_product(self) -> None:
        """Insert a product, then change its primary key."""
        number = next(self._next)
        self._execute(
            "INSERT INTO dbo.products (sku, title, price, stock) VALUES (?, N'to be moved', 1, 1)",
            f"NEW-{number}",
        )
        self.connection.commit()
        self._execute("UPDATE dbo.products SET sku = ? WHERE sku = ?", f"{MOVED}{number}", f"NEW-{number}")
        self.connection.commit()

    def cancel_lines(self) -> None:
        if self._open:
            number = self._open.pop(0)
            self._execute("DELETE FROM sales.order_lines WHERE order_id = ?", number)
            self._execute("DELETE FROM sales.orders WHERE id = ?", number)
            self.connection.commit()

    def write_document(self) -> None:
        number = next(self._next)
        self._execute(
            "INSERT INTO dbo.documents (id, title, body, attachment, remarks) VALUES (?, N'large', ?, ?, 'r')",
            number, "Zeichen " * (LARGE_TEXT // 8 + 1), b"\x00\xff" * 5_000,
        )  # fmt: skip
        # Leave the large columns unchanged: CDC does not deliver their previous values.
        self._execute("UPDATE dbo.documents SET title = N'large, retitled' WHERE id = ?", number)
        self._execute("UPDATE dbo.documents SET remarks = 'changed' WHERE id = ?", self.chance.randint(1, 1000))
        self.connection.commit()

    def measure(self) -> None:
        moment = EPOCH + dt.timedelta(milliseconds=next(self._next))
        self._execute(
            "INSERT INTO dbo.measurements (device_id, taken_at, temperature, flags, local_time) "
            "VALUES (?, ?, ?, 0x01020304, '12:34:56.7654321')",
            self.chance.randint(1, 50), moment, None,
        )  # fmt: skip
        self.connection.commit()

    def touch_customer(self) -> None:
        customer = self.chance.randint(1, 20_000)
        self._execute(
            "UPDATE dbo.customers SET credit_limit = credit_limit + 1.5, created_at = SYSDATETIME() WHERE id = ?",
            customer,
        )
        if self._has_column:
            self._execute("UPDATE dbo.customers SET loyalty = N'gold' WHERE id = ?", customer)
        self.connection.commit()

    def log_entry(self) -> None:
        self._execute("INSERT INTO dbo.audit_log VALUES (SYSDATETIME(), N'workload', 'entry')")
        self._execute("DELETE FROM dbo.audit_log WHERE message = 'row 1'")
        self.connection.commit()

    def change_of_mind(self) -> None:
        """Roll back a transaction, of which nothing may ever reach the lake."""
        self._execute(
            "INSERT INTO dbo.products (sku, title, price, stock) VALUES (?, N'never', 1, 1)",
            f"{ROLLED_BACK}{next(self._next)}",
        )
        self._execute("DELETE FROM sales.orders WHERE id = ?", self._any_order())
        self.connection.rollback()

    def add_column(self) -> None:
        """Add a column, then a second capture instance that contains it: streaming must switch without a gap."""
        self._execute("ALTER TABLE dbo.customers ADD loyalty nvarchar(20) NULL")
        self._execute(
            "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'customers', "
            "@role_name = NULL, @capture_instance = N'dbo_customers_2'"
        )
        self.connection.commit()
        self._has_column = True

    def signal_log(self) -> None:
        self._signal("log", {"message": "Hello from the signal table at {}"})

    def signal_snapshot(self) -> None:
        self._signal("execute-snapshot", {"type": "BLOCKING", "data-collections": ["shop.dbo.measurements"]})

    def _signal(self, kind: str, data: dict[str, object]) -> None:
        self._execute(
            "INSERT INTO dbo.debezium_signal (id, type, data) VALUES (?, ?, ?)",
            f"demo-{kind}-{next(self._next)}", kind, json.dumps(data),
        )  # fmt: skip
        self.connection.commit()

    def _any_order(self) -> int:
        return self.chance.choice(self._open) if self._open else self.chance.randint(1, 59_000)
