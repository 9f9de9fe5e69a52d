"""The part that is written in Rust."""

from typing import List, Mapping, Optional, Sequence

class Error(Exception):
    """Something is wrong with a trace, or with what is asked of it."""

class UsageError(Error):
    """The trace does not hold what is asked for."""

class InvalidTrace(Error):
    """A file is no trace, or is damaged or cut off."""

class Batches:
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object: ...

class Trace:
    def __new__(
        cls, paths: Sequence[str], symbols: Sequence[str], partial: bool, max_steps: int, quiet: bool
    ) -> Trace: ...
    def header(self) -> str: ...
    @property
    def ranks(self) -> List[int]: ...
    @property
    def complete(self) -> bool: ...
    @property
    def calls(self) -> int: ...
    @property
    def timed(self) -> bool: ...
    def table(
        self,
        name: str,
        asked: Mapping[str, object],
        columns: Optional[Sequence[str]],
        most_bytes: Optional[int] = None,
    ) -> Batches: ...
    def stat(self, words: Sequence[str]) -> str: ...
