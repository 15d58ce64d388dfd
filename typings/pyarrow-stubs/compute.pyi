# pyarrow makes these functions when it is imported; there is nothing that a checker could read.
from typing import Any

def __getattr__(name: str) -> Any: ...
