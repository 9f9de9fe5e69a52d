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


@pytest.mark.parametrize("kernel", ["stencil2d", "fft", "threads"])
def test_cubes_are_read_by_their_reader(traces, tmp_path, kernel):
    pycubexr = pytest.importorskip("pycubexr")
    archive = tmp_path / "app.cubex"
    run("st-convert", "-q", "--waits", traces[kernel], "-o", archive)
    waits = [json.loads(line) for line in run("st-stat", "waits", "--format", "json", traces[kernel]).splitlines()]
    waited = {row["kind"].replace(", ", "_").replace(" ", "_"): row["wait_ns"] / 1e9 for row in waits}
    with pycubexr.CubexParser(archive) as cube:
        values = {metric.name: cube.get_metric_values(metric) for metric in cube.all_metrics()}
        assert len(cube.get_locations()) == 4

        def sum_of(metric, function=None):
            paths = [p for p in cube.all_cnodes() if function in (None, cube.get_region(p).name)]
            return sum(float(values[metric].value(path)) for path in paths)

        for function, (calls, seconds) in by_function(traces[kernel]).items():
            assert sum_of("visits", function) == calls, function
            assert math.isclose(sum_of("time", function), seconds, rel_tol=1e-6, abs_tol=1e-12), function
        found = {kind.name: sum_of(kind.name) for kind in cube.get_metric_by_name("time").childs}
        assert {kind for kind, seconds in found.items() if seconds > 0} == set(waited)
        assert all(math.isclose(found[kind], seconds, rel_tol=1e-6) for kind, seconds in waited.items())
