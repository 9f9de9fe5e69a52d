"""Sums per call path, read by others' programs where these are installed."""

import json
import math

import pytest
from conftest import run

SIZES = [4, 16, 36, 64, 100]


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Traces of a pipeline on more and more ranks."""
    place = tmp_path_factory.mktemp("series")
    made = {p: place / f"{p}.st" for p in SIZES}
    for p, path in made.items():
        run("st-kernels", "wavefront", "--paper", "--ranks", p, "--steps", 5, "-o", path)
    return made


def by_function(path):
    """Calls and seconds of each function, as st-stat prints them."""
    rows = [json.loads(line) for line in run("st-stat", "calls", "--format", "json", path).splitlines()]
    sums = {}
    for row in rows:
        calls, seconds = sums.get(row["function"], (0, 0))
        sums[row["function"]] = calls + row["calls"], seconds + row["time_ns"] / 1e9
    return sums


def test_extra_p_fits_what_is_known(series, tmp_path):
    pytest.importorskip("extrap")
    from extrap.entities.metric import Metric
    from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file
    from extrap.modelers.model_generator import ModelGenerator

    lines = tmp_path / "series.jsonl"
    run("st-convert", "-q", *series.values(), "-o", lines)
    experiment = read_jsonlines_file(lines)
    assert [parameter.name for parameter in experiment.parameters] == ["p"]
    assert sorted(int(at[0]) for at in experiment.coordinates) == SIZES

    found = {}
    for (path, metric), measurements in experiment.measurements.items():
        function = path.name.split("->")[-1]
        for measurement in measurements:
            p = int(measurement.coordinate[0])
            key = p, function, metric.name
            found[key] = found.get(key, 0) + measurement.mean * p
    for p, path in series.items():
        for function, (calls, seconds) in by_function(path).items():
            assert math.isclose(found[p, function, "visits"], calls), function
            assert math.isclose(found[p, function, "time"], seconds, rel_tol=1e-6), function

    # A pipeline over a square of ranks is as long as its side.
    models = ModelGenerator(experiment)
    models.model_all()
    paths = [path for path in experiment.callpaths if path.name.endswith("->MPI_Allreduce")]
    assert len(paths) == 1
    model = models.models[paths[0], Metric("time")]
    assert "p^(1/2)" in model.hypothesis.function.to_string(*experiment.parameters), model.hypothesis.function
