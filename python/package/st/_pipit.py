"""The frame that Pipit's analyses take.

Source: Pipit (github.com/hpcgroup/pipit), pipit/trace.py and its readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Optional

import numpy as np
import pandas as pd

from . import _st

if TYPE_CHECKING:
    from ._trace import Trace

#: Places of rows in their call.
ENTER, INSTANT, LEAVE = 0, 1, 2


def frame(trace: Trace) -> pd.DataFrame:
    """Rows in the order of time, and of calls where times are equal."""
    if not trace.timed:
        raise _st.UsageError("the trace has no exact times of all ranks, which Pipit needs")
    calls = trace.events(columns=["rank", "thread", "call", "function", "enter_ns", "exit_ns"]).to_pandas()
    parts = []
    for kind, time, place in [("Enter", "enter_ns", ENTER), ("Leave", "exit_ns", LEAVE)]:
        at = calls[["rank", "thread", "call"]]
        parts.append(_rows(calls[time], kind, calls["function"].astype(str), at, None, place))
    ends = trace.messages().to_pandas()
    for name, time, of, call, other, peer in [
        ("MpiSend", "sent_ns", "from", "sent_call", "receiver", "to_rank"),
        ("MpiRecv", "received_ns", "to", "received_call", "sender", "from_rank"),
    ]:
        what: List[Dict[str, object]] = [
            {other: p, "communicator": c, "msg_tag": t, "msg_length": b}
            for p, c, t, b in zip(ends[peer], ends["comm"], ends["tag"], ends["bytes"])
        ]
        at = ends[[f"{of}_rank", f"{of}_thread", call]]
        parts.append(_rows(ends[time], "Instant", pd.Series(name, index=ends.index), at, what, INSTANT))
    # Calls of a thread follow each other: in their order their times ascend, and sorting by time leaves it so.
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True)
    rows = rows.sort_values(["Process", "Thread", "call", "place"], kind="stable")
    rows = rows.sort_values("Timestamp (ns)", kind="stable", ignore_index=True)
    rows = rows.drop(columns=["call", "place"])
    for column in ["Event Type", "Name", "Process", "Thread"]:
        rows[column] = rows[column].astype("category")
    return rows


def _rows(
    time: pd.Series,
    kind: str,
    name: pd.Series,
    at: pd.DataFrame,
    what: Optional[List[Dict[str, object]]],
    place: int,
) -> pd.DataFrame:
    rank, thread, call = (at.iloc[:, i].to_numpy() for i in range(3))
    return pd.DataFrame(
        {
            "Timestamp (ns)": time.to_numpy(np.float64),
            "Event Type": kind,
            "Name": name.to_numpy(),
            "Process": rank,
            "Thread": thread,
            "Attributes": what,
            "call": call,
            "place": place,
        }
    )
