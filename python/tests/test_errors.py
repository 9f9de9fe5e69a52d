"""What is wrong is said, and nothing ends the interpreter."""

import random
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import st
from conftest import program, run


def said(*words):
    """What st-view says is wrong with a file."""
    done = subprocess.run([program("st-view"), *map(str, words)], capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr.strip().removeprefix("st-view: ")


def test_texts_are_those_of_the_programs(traces, tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        st.open(tmp_path / "no.st")
    assert str(missing.value) == said(tmp_path / "no.st")
    (tmp_path / "text.st").write_text("no trace at all\n")
    with pytest.raises(st.InvalidTrace) as text:
        st.open(tmp_path / "text.st")
    assert str(text.value) == said(tmp_path / "text.st")
    whole = traces["fft"].read_bytes()
    (tmp_path / "cut.st").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(st.InvalidTrace) as cut:
        st.open(tmp_path / "cut.st")
    assert str(cut.value) == said(tmp_path / "cut.st")
    with pytest.raises(TypeError):
        st.open()
    for steps in [-1, 1 << 64, "many", None]:
        with pytest.raises(st.UsageError, match="^max_steps: "):
            st.open(traces["fft"], max_steps=steps)
    assert st.open(traces["fft"], symbols=str(tmp_path)).calls == st.open(traces["fft"]).calls


def test_what_is_not_there_is_refused(traces):
    t = st.open(traces["fft"])
    for asked, text in [
        ({"ranks": [7]}, "^ranks: the trace has no rank 7; it has 0-3"),
        ({"sites": "nowhere"}, "nowhere: the trace has no such call site or function"),
        ({"functions": "MPI_Frobnicate"}, "MPI_Frobnicate: the trace has no such function"),
        ({"phase": 1}, "the program does not call MPI_Pcontrol"),
        ({"start": 1e6}, "^start 1000000: the run ends after"),
        ({"start": 2.0, "end": 1.0}, "^start is not before end"),
        ({"start": "1s"}, "^start: '1s': seconds are a number"),
        ({"end": float("nan")}, "^end: nan: seconds are a number"),
        ({"ranks": [0, -1]}, "^ranks: -1: ranks are whole numbers from 0"),
        ({"ranks": 1.5}, "^ranks: 1.5: ranks are whole numbers from 0"),
        ({"ranks": [1 << 40]}, "^ranks: 1099511627776: ranks are whole numbers"),
        ({"ranks": []}, "^ranks: none is named"),
        ({"ranks": b"1"}, "^ranks: b'1' is neither"),
        ({"functions": []}, "^functions: none is named"),
        ({"sites": (name for name in [])}, "^sites: none is named"),
        ({"sites": b"1"}, "^sites: b'1' is neither"),
        ({"phase": "a"}, "^phase: 'a' is no whole number"),
        ({"columns": 3}, "^columns: 3 is neither"),
    ]:
        with pytest.raises(st.UsageError, match=text):
            t.events(**asked)
    assert t.events(columns="rank").column_names == ["rank"]
    site = t.events(columns="site")["site"][-1].as_py()
    assert t.events(sites=np.int64(site)) == t.events(sites=site)
    with pytest.raises(ValueError, match="ranks: x"):
        t.events(ranks="x")
    with pytest.raises(st.UsageError, match="by"):
        t.waits("moon")
    for command, text in [
        (["report"], "^report: makes no table: run st-stat report$"),
        (["diff", "other.st"], "^diff: compares two traces: run st-stat diff$"),
        (["mape"], "^mape: compares two traces"),
        (["waits", "--nix"], "^unexpected argument '--nix' found$"),
        (["waits", "--format", "csv"], "the answer is a table"),
        (["waits", "-h"], "^help is st-stat's"),
    ]:
        with pytest.raises(st.UsageError, match=text):
            t.stat(*command)
    assert issubclass(st.UsageError, st.Error) and issubclass(st.InvalidTrace, st.Error)


def test_too_much_work_is_refused(traces):
    t = st.open(traces["fft"], max_steps=10)
    with pytest.raises(st.Error, match="steps"):
        t.events()


def test_a_table_without_room_is_an_exception(large):
    asked = {"ranks": None, "start": None, "end": None, "functions": [], "sites": [], "phase": None}
    for table in ["events", "messages"]:
        with pytest.raises(MemoryError, match="choose columns, ranks"):
            large._inner.table(table, asked, None, 50_000_000)
    assert large._inner.table("sites", asked, None, 50_000_000)


def test_damage_is_an_exception(traces, tmp_path):
    whole = traces["workers"].read_bytes()
    chance, refused, read = random.Random(22), 0, 0
    for number in range(300):
        bytes_ = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            bytes_[chance.randrange(len(bytes_))] ^= 1 << chance.randrange(8)
        path = tmp_path / f"{number}.st"
        path.write_bytes(bytes_[: chance.randint(1, len(bytes_))] if number % 3 == 0 else bytes_)
        try:
            t = st.open(path, partial=number % 2 == 0, max_steps=3_000_000, quiet=True)
            t.events(), t.messages(), t.rank_table(), t.sites(), t.comms(), t.wait_states()
            t.summary(), t.matrix(), t.why(), t.clusters()
            read += 1
        except (st.Error, OSError):
            refused += 1
        path.unlink()
    assert refused > 100 and read > 2, (refused, read)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.st"
    run("st-kernels", "stencil2d", "--paper", "--ranks", 8, "--steps", 60_000, "-o", path)
    return st.open(path)


def test_an_interrupt_ends_a_question(large):
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        large.messages()
    assert time.monotonic() - begin < 1.5


def test_other_threads_go_on(large):
    stop, ticks = threading.Event(), []

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    large.events(columns=["rank"])
    stop.set()
    thread.join()
    assert len(ticks) > 10
    assert max(b - a for a, b in zip(ticks, ticks[1:])) < 1.0
