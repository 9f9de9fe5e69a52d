"""Traces of MPI programs: events, messages, waits and findings as Arrow tables.

>>> import st
>>> t = st.open(trace)                       # a file of st-record, or a directory of streams
>>> t
<st.Trace 'st-kernels': 4 ranks, 756 calls>
>>> events = t.events(ranks=0, functions="MPI_Isend", columns=["rank", "enter_ns", "dest", "sent_bytes"])
>>> events.num_rows
80
>>> events.schema.names
['rank', 'enter_ns', 'dest', 'sent_bytes']
>>> int(t.matrix().bytes.sum()) == sum(t.messages(columns=["bytes"])["bytes"].to_pylist())
True

Tables are :class:`pyarrow.Table`: ``.to_pandas()`` makes a frame of one, and polars and DuckDB take it as it is. Their columns are those of
the tables of st-convert(1) and of the commands of st-stat(1), names end with units, and times are ns since the first rank entered
MPI_Init. Numbers are those of the programs: what they know is used, not written anew.
"""

from ._st import Error, InvalidTrace, UsageError
from ._trace import Matrix, Trace, open

__all__ = ["Error", "InvalidTrace", "Matrix", "Trace", "UsageError", "open"]
