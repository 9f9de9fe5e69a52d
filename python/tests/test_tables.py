"""Tables beside what the programs print."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import st
from conftest import run


def rows_of(table):
    """Cells as st-convert writes CSV."""
    return [{k: "" if v is None else str(v) for k, v in row.items()} for row in table.to_pylist()]


@pytest.fixture(scope="session")
def converted(tmp_path_factory):
    known = {}

    def convert(path, *options):
        if (path, options) not in known:
            out = tmp_path_factory.mktemp("csv") / "out"
            run("st-convert", "-q", path, "--to", "csv", *options, "-o", out)
            tables = {}
            for table in ["events", "messages", "sites", "ranks", "comms"]:
                with open(out / f"{table}.csv", newline="") as file:
                    tables[table] = list(csv.DictReader(file))
            known[path, options] = tables
        return known[path, options]

    return convert


def by_call(rows):
    return sorted(rows, key=lambda row: (int(row["rank"]), int(row["thread"]), int(row["call"])))


def test_tables_are_those_of_st_convert(path, converted):
    t, tables = st.open(path), converted(path)
    assert rows_of(t.events()) == by_call(tables["events"])
    assert t.events().num_rows == t.calls > 0
    assert rows_of(t.messages()) == tables["messages"]
    assert rows_of(t.sites()) == tables["sites"]
    assert rows_of(t.rank_table()) == tables["ranks"]
    assert rows_of(t.comms()) == tables["comms"]


@pytest.mark.parametrize(
    "asked, options",
    [
        ({"ranks": [0, 2]}, ["--ranks", "0,2"]),
        ({"ranks": "1-2"}, ["--ranks", "1-2"]),
        ({"ranks": 3}, ["--ranks", "3"]),
        ({"start": 0.002, "end": 0.006}, ["--from", "0.002", "--until", "0.006"]),
        ({"sites": "MPI_Isend"}, ["--sites", "MPI_Isend"]),
        ({"sites": [2, 3]}, ["--sites", "2", "--sites", "3"]),
    ],
)
def test_filters_are_those_of_st_convert(traces, converted, asked, options):
    path = traces["stencil2d"]
    t, tables = st.open(path), converted(path, *options)
    events = t.events(**asked)
    assert 0 < events.num_rows < t.calls
    assert rows_of(events) == by_call(tables["events"])
    assert rows_of(t.messages(**asked)) == tables["messages"]


def test_functions_and_sites_must_both_fit(traces):
    t = st.open(traces["stencil2d"])
    sends = t.events(functions="MPI_Isend")
    assert set(sends["function"].to_pylist()) == {"MPI_Isend"}
    site = sends["site"][0].as_py()
    assert t.events(functions="MPI_Isend", sites=site).num_rows == sends.num_rows
    assert t.events(functions="MPI_Irecv", sites=site).num_rows == 0
    both = t.events(functions=["MPI_Isend", "MPI_Irecv"])
    assert both.num_rows == 2 * sends.num_rows


def test_columns_come_as_they_are_asked_for(traces):
    t = st.open(traces["fft"])
    some = t.events(columns=["exit_ns", "rank"])
    assert some.schema.names == ["exit_ns", "rank"]
    assert some["exit_ns"].to_pylist() == t.events()["exit_ns"].to_pylist()
    with pytest.raises(ValueError, match="bits: events has no such column; it has rank, thread"):
        t.events(columns=["bits"])


def test_numbers_are_those_of_st_stat(path):
    t = st.open(path, quiet=True)
    summary = json.loads(run("st-stat", "-q", path, "--format", "json"))
    assert t.summary() == summary
    events = t.events().to_pandas()
    assert events["calls"].sum() == summary["calls"]
    assert events["sent_bytes"].sum() == summary["sent_bytes"]
    assert events["received_bytes"].sum() == summary["received_bytes"]
    calls = pd.read_csv(io.StringIO(run("st-stat", "calls", "--functions", "-q", path, "--format", "csv")))
    ours = events.groupby("function", observed=True)["calls"].sum()
    assert ours.to_dict() == dict(zip(calls["function"], calls["calls"]))
    pairs = pd.read_csv(io.StringIO(run("st-stat", "matrix", "-q", path, "--format", "csv")))
    pairs = pairs[pairs["to_rank"].notna()]
    matrix = t.matrix()
    assert matrix.messages.sum() == pairs["messages"].sum()
    assert matrix.bytes.sum() == pairs["sent_bytes"].sum()
    assert matrix.fetched.sum() == pairs["fetched_bytes"].sum()
    for row in pairs.itertuples():
        assert matrix.bytes[row.from_rank, int(row.to_rank)] == row.sent_bytes


def test_matrix_is_that_of_the_messages(traces):
    t = st.open(traces["stencil2d"])
    messages = t.messages().to_pandas()
    ours = np.zeros((4, 4), np.int64)
    np.add.at(ours, (messages["from_rank"], messages["to_rank"]), messages["bytes"])
    assert (t.matrix().bytes == ours).all() and ours.sum() > 0


@pytest.mark.parametrize("by", ["kind", "site", "rank", "pair", "culprit"])
def test_waits_are_those_of_st_stat(path, by):
    t = st.open(path, quiet=True)
    lines = run("st-stat", "waits", "--by", by, "-q", path, "--format", "json").splitlines()
    assert t.waits(by).to_pylist() == [json.loads(line) for line in lines]


def test_wait_states_are_what_waits_add_up(path):
    t = st.open(path, quiet=True)
    states = t.wait_states().to_pandas()
    for by, keys in [("kind", ["kind"]), ("rank", ["rank"]), ("pair", ["rank", "for_rank"]), ("site", ["kind", "function", "site"])]:
        ours = states.groupby(keys, observed=True, dropna=False)["wait_ns"].agg(["sum", "count", "max"])
        for row in t.waits(by).to_pylist():
            found = ours.loc[tuple(row[key] for key in keys) if len(keys) > 1 else row[keys[0]]]
            assert list(found) == [row["wait_ns"], row["waits"], row["longest_ns"]], row
        assert len(ours) == t.waits(by).num_rows
    if len(states):
        calls = t.events().to_pandas().set_index(["rank", "thread", "call"])
        of = calls.loc[list(zip(states["rank"], states["thread"], states["call"]))]
        assert (of["enter_ns"].to_numpy() <= states["begin_ns"].to_numpy()).all()
        assert (of["exit_ns"].to_numpy() >= (states["begin_ns"] + states["wait_ns"]).to_numpy()).all()
        some = t.wait_states(ranks=0, functions=states["function"].iloc[0])
        wanted = states[(states["rank"] == 0) & (states["function"] == states["function"].iloc[0])]
        assert some["wait_ns"].to_pylist() == wanted["wait_ns"].to_list()


def test_findings_and_clusters_are_those_of_st_stat(traces):
    path = traces["stencil2d"]
    t = st.open(path, quiet=True)
    for ours, command in [(t.why(all=True), ["why", "--all"]), (t.clusters(), ["clusters"])]:
        lines = run("st-stat", *command, "-q", path, "--format", "json").splitlines()
        theirs = [json.loads(line) for line in lines]
        assert ours.to_pylist() == theirs and theirs
    assert "late sender" in t.why()["kind"].to_pylist()


def test_a_table_without_rows_has_its_columns(tmp_path):
    run("st-kernels", "stencil1d", "--paper", "--ranks", 1, "--steps", 1, "-o", tmp_path / "one.st")
    waits = st.open(tmp_path / "one.st").waits()
    assert waits.num_rows == 0
    assert waits.schema.names == ["kind", "wait_ns", "share_percent", "waits", "longest_ns"]
    assert waits.schema.field("kind").type == "string" and waits.schema.field("waits").type == "int64"


def test_what_is_not_known_has_a_type(traces, tmp_path):
    run("st-kernels", "stencil1d", "--paper", "--ranks", 1, "--steps", 1, "-o", tmp_path / "one.st")
    clusters = st.open(tmp_path / "one.st").clusters()
    assert clusters["unlike_before"].to_pylist() == [None]
    assert clusters.schema.field("unlike_before").type == "string"
    run("st-merge", "-q", traces["fft"], "-o", tmp_path / "merged.st")
    types = {field.type for field in st.open(tmp_path / "merged.st").stat("calls", "--sites").schema}
    assert pa.null() not in types


def test_header(traces):
    t = st.open(traces["workers"])
    assert t.header["world"] == 6 and t.ranks == list(range(6)) and t.complete and t.timed
    assert repr(t).startswith("<st.Trace ")


def test_merged_traces_have_no_times(traces, tmp_path):
    merged = tmp_path / "merged.st"
    run("st-merge", "-q", traces["fft"], "-o", merged)
    t, whole = st.open(merged), st.open(traces["fft"])
    assert not t.timed and t.calls == whole.calls
    assert t.events()["enter_ns"].null_count == t.calls
    columns = ["rank", "thread", "call", "function", "comm", "dest", "source", "sent_bytes", "received_bytes"]
    assert t.events(columns=columns).to_pylist() == whole.events(columns=columns).to_pylist()
    with pytest.raises(st.UsageError, match="which start, end and phase need: .*--keep-columns"):
        t.events(start=1.0)
    with pytest.raises(st.UsageError):
        t.to_pipit()


def test_pipit_frame(path):
    t = st.open(path)
    frame = t.to_pipit()
    assert frame["Timestamp (ns)"].is_monotonic_increasing
    for (_, _), own in frame[frame["Event Type"] != "Instant"].groupby(["Process", "Thread"], observed=True):
        # A call is left before the next one is entered, and under its own name.
        assert list(own["Event Type"]) == ["Enter", "Leave"] * (len(own) // 2)
        assert list(own["Name"][::2]) == list(own["Name"][1::2])
    sends = frame[frame["Name"] == "MpiSend"]
    messages = t.messages().to_pandas()
    assert len(sends) == len(messages)
    assert sum(what["msg_length"] for what in sends["Attributes"]) == messages["bytes"].sum()


def test_other_libraries_take_the_tables(traces):
    t = st.open(traces["fft"])
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    events = t.events()
    sent = sum(events["sent_bytes"].to_pylist())
    assert polars.from_arrow(events)["sent_bytes"].sum() == sent
    assert duckdb.sql("select sum(sent_bytes) from events").fetchall() == [(sent,)]
