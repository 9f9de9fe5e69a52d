"""Traces to try, made on paper by st-kernels; the programs are those of ST_BIN, or of PATH."""

import os
import shutil
import subprocess

import pytest


def program(name):
    """Where a program is."""
    place = os.environ.get("ST_BIN")
    found = os.path.join(place, name) if place else shutil.which(name)
    assert found and os.path.exists(found), f"{name} is not built: make build, or set ST_BIN"
    return found


def run(name, *words):
    """What a program prints."""
    done = subprocess.run([program(name), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


KERNELS = {
    # Several communicators, wildcards, one-sided accesses, threads.
    "stencil2d": ["--ranks", 4, "--steps", 20, "--slow", "1:1.5"],
    "fft": ["--ranks", 4, "--steps", 5],
    "workers": ["--ranks", 6, "--steps", 5],
    "rma": ["--ranks", 4, "--steps", 5],
    "threads": ["--ranks", 4, "--steps", 5],
}


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    """By kernel: a trace."""
    place = tmp_path_factory.mktemp("traces")
    made = {}
    for kernel, options in KERNELS.items():
        made[kernel] = place / f"{kernel}.st"
        run("st-kernels", kernel, "--paper", *options, "-o", made[kernel])
    return made


@pytest.fixture(params=KERNELS)
def path(request, traces):
    """Each of them."""
    return traces[request.param]
