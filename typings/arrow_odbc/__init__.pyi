# What this project uses of arrow-odbc, which ships no marker of its types.
from collections.abc import Iterator, Sequence

from pyarrow import RecordBatch, Schema

class Error(Exception): ...

class BatchReader:
    def __iter__(self) -> Iterator[RecordBatch]: ...

class Connection:
    def execute(
        self, query: str, parameters: Sequence[str | None] | None = ..., query_timeout_sec: int | None = ...
    ) -> None: ...
    def read_arrow_batches(
        self,
        query: str,
        batch_size: int = ...,
        parameters: Sequence[str | None] | None = ...,
        max_bytes_per_batch: int | None = ...,
        schema: Schema | None = ...,
        fetch_concurrently: bool = ...,
        query_timeout_sec: int | None = ...,
    ) -> BatchReader: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...

def connect(connection_string: str, *, login_timeout_sec: int | None = ..., autocommit: bool = ...) -> Connection: ...
