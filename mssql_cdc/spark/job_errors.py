"""What is reported of Spark's errors: their messages may quote values of rows, so only known words of them are.

They contain the message of each cause, and those of a cluster manager, after a first line that often says nothing.
"""

from __future__ import annotations

import re

MORE = "Spark's log says more (commands show it with --debug)"

_BY_TASK = re.compile(r"Job aborted due to stage failure|exception was thrown from the Python worker")
_KNOWN = re.compile(
    r"Python worker exited unexpectedly \(crashed\)|Python worker failed to connect back"
    r"|Fatal Python error: (?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating.point exception)"
    r"|An exception was thrown from the Python worker"
    r"|ExecutorLostFailure|Remote RPC client disassociated"
    r"|(?:[Ee]xit|[Ee]xited with) (?:code|status):? \d{1,3}\b|OOMKilled|exceeding (?:physical |virtual )?memory limits"
    r"|Java heap space|GC overhead limit exceeded|Unable to acquire \d+ bytes of memory|unable to create native thread"
    r"|No space left on device|Disk quota exceeded|Too many open files|Read-only file system|Permission denied"
)
_CLASS = r"\b(?:[a-z]\w*\.){1,9}[A-Z]\w*"
_CONDITION = re.compile(rf"(?:\A|{_CLASS}\)?:? )\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)?)\] ")
"""The name of Spark's error condition, before a message."""
_THROWN = re.compile(rf"^(?:: |Caused by: )({_CLASS})", re.MULTILINE)


def is_of_spark(error: BaseException) -> bool:
    """Whether the message is from a Spark job; Spark finds errors in a statement before it has read a row."""
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        return False
    return all(kind.__name__ != "AnalysisException" for kind in type(error).__mro__)


def ended_by_task(error: BaseException) -> bool:
    """Whether one of its own tasks brought the job down: it was not canceled, and the session is not gone."""
    return is_of_spark(error) and _BY_TASK.search(str(error)) is not None


def cause_of(error: BaseException) -> str:
    """The known words in an error of Spark's, or else the exceptions that were thrown, and where to find the rest."""
    text = str(error)
    found = [one[0] for one in _KNOWN.finditer(text)] + _CONDITION.findall(text)
    found = found or [name.rpartition(".")[2] for name in _THROWN.findall(text)]
    return "; ".join([*dict.fromkeys(found), MORE])
