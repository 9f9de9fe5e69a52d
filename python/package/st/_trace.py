"""A trace that is open, and what it is asked for."""

from __future__ import annotations

import datetime
import json
import math
import numbers
import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Union

import numpy as np
import pyarrow as pa

from . import _st

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

Path = Union[str, "os.PathLike[str]"]
Ranks = Union[int, str, Iterable[int]]
Names = Union[str, int, Iterable[Union[str, int]]]

#: Elements that a square matrix of ranks may have.
MOST = 1 << 28


class Matrix(NamedTuple):
    """Who talks to whom, ``[from, to]`` by world rank."""

    #: Messages, accesses to windows among them.
    messages: npt.NDArray[np.int64]
    #: Bytes from the first to the second.
    bytes: npt.NDArray[np.int64]
    #: Bytes that the first got from a window of the second.
    fetched: npt.NDArray[np.int64]


def open(  # noqa: A001
    *paths: Path,
    symbols: Union[Path, Iterable[Path]] = (),
    partial: bool = False,
    max_steps: int = 100_000_000,
    quiet: bool = False,
) -> Trace:
    """Opens a trace: files, or directories of streams.

    ``symbols`` are directories in which programs and their debug information are looked for, to name call sites; ``partial`` takes what
    is left of a truncated stream; a question that takes more than ``max_steps`` steps is refused (see st-stat(1)), for a few bytes can
    stand for any number of calls; a table that does not fit into the memory that is free is a :class:`MemoryError`. What is missing or
    doubtful is said on standard error unless ``quiet``.

    Raises :class:`InvalidTrace` for what is no whole trace, :class:`OSError` for what cannot be read.
    """
    if not paths:
        raise TypeError("st.open() needs the name of a trace")
    names = [os.fspath(path) for path in paths]
    places = [symbols] if isinstance(symbols, (str, os.PathLike)) else _several("symbols", symbols)
    steps = _whole("max_steps", max_steps)
    if steps is None or not 0 <= steps < 1 << 64:
        raise _st.UsageError(f"max_steps: {max_steps!r}: steps are a whole number from 0")
    inner = _st.Trace(names, [os.fspath(path) for path in places], partial, steps, quiet)
    return Trace(inner)


def _texts(name: str, names: Optional[Names]) -> List[str]:
    if names is None:
        return []
    if isinstance(names, numbers.Integral):
        return [str(names)]
    texts = [str(text) for text in _several(name, names)]
    if not texts:
        raise _st.UsageError(f"{name}: none is named; without {name} all are chosen")
    return texts


def _ranks(ranks: Optional[Ranks]) -> Union[str, List[int], None]:
    if ranks is None or isinstance(ranks, str):
        return ranks
    all_ranks: List[Any] = [ranks] if isinstance(ranks, numbers.Real) else list(_several("ranks", ranks))
    for rank in all_ranks:
        if not isinstance(rank, numbers.Integral) or not 0 <= int(rank) < 1 << 32:
            raise _st.UsageError(f"ranks: {rank!r}: ranks are whole numbers from 0")
    if not all_ranks:
        raise _st.UsageError("ranks: none is named; without ranks all are chosen")
    return [int(rank) for rank in all_ranks]


def _several(name: str, of: Any) -> Iterable[Any]:
    """What is to be a text, or several; anything else is refused by name."""
    if isinstance(of, bytes) or not isinstance(of, Iterable):
        raise _st.UsageError(f"{name}: {of!r} is neither text nor a list")
    return [of] if isinstance(of, str) else of


def _whole(name: str, number: Optional[int]) -> Optional[int]:
    if number is None:
        return None
    if not isinstance(number, numbers.Integral):
        raise _st.UsageError(f"{name}: {number!r} is no whole number")
    return int(number)


def _seconds(name: str, time: Optional[float]) -> Optional[float]:
    """A time of the run; anything but a number of seconds is refused by name."""
    if time is None:
        return None
    try:
        seconds = math.nan if isinstance(time, str) else float(time)
    except (TypeError, ValueError):
        seconds = math.nan
    if math.isnan(seconds):
        raise _st.UsageError(f"{name}: {time!r}: seconds are a number")
    return seconds


class Trace:
    """A trace, in memory as it is stored: calls are read anew for each question.

    Questions about calls take the same filters, which are applied while calls are read: ``ranks``, a number, numbers, or text as
    ``"0-3,8"``; ``start`` and ``end`` in seconds, of which calls are that overlap the time between them; ``functions`` of MPI; ``sites``,
    call sites by number or as their places are printed (a file, a file and line, a function of the program); ``phase``, the level of an
    MPI_Pcontrol.
    """

    def __init__(self, inner: _st.Trace) -> None:
        self._inner = inner
        self._header: Dict[str, Any] = json.loads(inner.header())

    def __repr__(self) -> str:
        name = os.path.basename(str(self._header.get("program", "")))
        return f"<st.Trace {name!r}: {len(self.ranks)} ranks, {self.calls:,} calls>"

    @property
    def header(self) -> Dict[str, Any]:
        """Facts of the run: ``program`` and ``args``, ``world`` (how many ranks it has), ``mpi``, ``options`` of the recorder and more."""
        return dict(self._header)

    @property
    def started(self) -> Optional[datetime.datetime]:
        """When the first rank started, if that is known."""
        ns = self._header.get("started") or 0
        return datetime.datetime.fromtimestamp(ns / 1e9, datetime.timezone.utc) if ns else None

    @property
    def ranks(self) -> List[int]:
        """World ranks that the trace holds."""
        return self._inner.ranks

    @property
    def complete(self) -> bool:
        """Whether all of the streams is there."""
        return self._inner.complete

    @property
    def timed(self) -> bool:
        """Whether exact times of all calls are there."""
        return self._inner.timed

    @property
    def calls(self) -> int:
        """How many events there are: calls, a series of polls being one."""
        return self._inner.calls

    def _table(
        self,
        name: str,
        ranks: Optional[Ranks] = None,
        start: Optional[float] = None,
        end: Optional[float] = None,
        functions: Optional[Names] = None,
        sites: Optional[Names] = None,
        phase: Optional[int] = None,
        columns: Union[str, Iterable[str], None] = None,
    ) -> pa.Table:
        asked = {
            "ranks": _ranks(ranks),
            "start": _seconds("start", start),
            "end": _seconds("end", end),
            "functions": _texts("functions", functions),
            "sites": _texts("sites", sites),
            "phase": _whole("phase", phase),
        }
        wanted = None if columns is None else [str(column) for column in _several("columns", columns)]
        table = pa.table(self._inner.table(name, asked, wanted)).unify_dictionaries()
        return table if wanted is None else table.select(wanted)

    def events(
        self,
        *,
        ranks: Optional[Ranks] = None,
        start: Optional[float] = None,
        end: Optional[float] = None,
        functions: Optional[Names] = None,
        sites: Optional[Names] = None,
        phase: Optional[int] = None,
        columns: Union[str, Iterable[str], None] = None,
    ) -> pa.Table:
        """Calls, by rank, thread and position; ``columns`` are those of the table ``events`` of st-convert(1), all unless chosen."""
        return self._table("events", ranks, start, end, functions, sites, phase, columns)

    def messages(
        self,
        *,
        ranks: Optional[Ranks] = None,
        start: Optional[float] = None,
        end: Optional[float] = None,
        functions: Optional[Names] = None,
        sites: Optional[Names] = None,
        phase: Optional[int] = None,
        columns: Union[str, Iterable[str], None] = None,
    ) -> pa.Table:
        """Messages of which the calls of both ends are chosen: those that send, post the receive and complete it."""
        return self._table("messages", ranks, start, end, functions, sites, phase, columns)

    def wait_states(
        self,
        *,
        ranks: Optional[Ranks] = None,
        start: Optional[float] = None,
        end: Optional[float] = None,
        functions: Optional[Names] = None,
        sites: Optional[Names] = None,
        phase: Optional[int] = None,
        columns: Union[str, Iterable[str], None] = None,
    ) -> pa.Table:
        """Wait states one by one, of the calls that are chosen: who waits where, how long, and for whom. :meth:`waits` has their sums."""
        return self._table("waits", ranks, start, end, functions, sites, phase, columns)

    def sites(self) -> pa.Table:
        """Call sites: number, identity, place, function, file and line, and the stack, innermost first."""
        return self._table("sites")

    def rank_table(self) -> pa.Table:
        """Ranks: host, threads, calls, time in all and in MPI, bytes."""
        return self._table("ranks")

    def comms(self) -> pa.Table:
        """Communicators, windows and files that calls name: number, name, members."""
        return self._table("comms")

    def stat(self, *command: str) -> pa.Table:
        """The answer of a command of st-stat, as ``t.stat("delays", "--by", "rank")``; without a command, its summary.

        The columns are those that the command's manual page lists for CSV and JSON: texts, or numbers, which are whole (int64) but where some
        are not (double). Commands without such columns (report), and those that compare two traces (diff, mape), are st-stat's alone.
        """
        types, *rows = [json.loads(line) for line in self._lines(command)]
        return pa.table({name: _column([row[name] for row in rows], number) for name, number in types.items()})

    def _lines(self, command: Iterable[Any]) -> List[str]:
        """What st-stat answers. Only line feeds end a line: names may hold what else Unicode takes for an end."""
        return self._inner.stat([str(word) for word in command]).rstrip("\n").split("\n")

    def summary(self) -> Dict[str, Any]:
        """What the program did, at a glance: the columns of st-stat(1)."""
        rows: List[Dict[str, Any]] = self.stat().to_pylist()
        return rows[0]

    def why(self, all: bool = False) -> pa.Table:  # noqa: A002
        """What makes the program slow, most costly first; with ``all`` also what costs less than 1 % of the run."""
        return self.stat("why", *(["--all"] if all else []))

    def waits(self, by: str = "kind") -> pa.Table:
        """Wait states by ``kind``, ``site``, ``rank``, ``pair`` or ``culprit``."""
        return self.stat("waits", "--by", by)

    def clusters(self) -> pa.Table:
        """Ranks that behave alike."""
        return self.stat("clusters")

    def matrix(self) -> Matrix:
        """Who talks to whom: messages, bytes and fetched bytes by pair of ranks."""
        world = max(int(self._header.get("world") or 0), max(self.ranks, default=-1) + 1)
        if world * world > MOST:
            raise _st.UsageError(f"a matrix of {world} ranks is too large: t.stat('matrix') lists the pairs that talk")
        table = self.stat("matrix")
        squares = [np.zeros((world, world), np.int64) for _ in range(3)]
        if table.num_rows:
            # Rows without receiver are collective operations and files.
            pairs = table.filter(table["to_rank"].is_valid())
            at = (pairs["from_rank"].to_numpy(), pairs["to_rank"].to_numpy().astype(np.int64))
            for square, name in zip(squares, ["messages", "sent_bytes", "fetched_bytes"]):
                square[at] = pairs[name].to_numpy()
        return Matrix(*squares)

    def to_pipit(self) -> pd.DataFrame:
        """The frame that Pipit works on: ``pipit.trace.Trace(None, t.to_pipit())``.

        Calls are an Enter and a Leave row each; messages are Instant rows MpiSend and MpiRecv in the calls that send and receive them.
        """
        from ._pipit import frame

        return frame(self)


def _column(values: List[Any], number: bool) -> pa.Array:
    if any(isinstance(value, float) for value in values):
        values = [float(value) if isinstance(value, int) else value for value in values]
    if all(value is None for value in values):
        # What is not known of any row has a type all the same.
        return pa.nulls(len(values), pa.int64() if number else pa.string())
    return pa.array(values)
