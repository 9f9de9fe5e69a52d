import os
import tempfile

from spack.package import *


class St(Package):
    """Records what MPI programs do, unmodified; explains, converts and replays the traces."""

    # There is no public address: what is built is the tree that this file is in, as it was last
    # committed. In an environment, `spack develop --path TREE st@main` builds a tree as it is; its
    # `target` must then hold nothing that was built for another MPI.
    git = "file://" + os.path.realpath(join_path(os.path.dirname(__file__), *[os.pardir] * 4))

    license("Apache-2.0 OR MIT")

    version("main")

    variant(
        "replay",
        default=True,
        description="What runs as ranks: replays, kernels, parallel merging",
    )

    # Crates that are not in cargo's cache come from the network, as Cargo.lock names them; where
    # there is none, cargo's configuration names a directory of `cargo vendor`.
    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("gmake", type="build")

    with when("+replay"):
        depends_on("mpi", type=("build", "link", "run"))
        depends_on("llvm+clang", type="build")  # libclang reads mpi.h

    requires("platform=linux target=x86_64:", msg="st is for Linux on x86-64")

    sanity_check_is_file = [join_path("bin", "st-record"), join_path("lib", "st", "libst_pmpi.so")]

    def setup_build_environment(self, env):
        if self.spec.satisfies("+replay"):
            env.set("MPICC", self.spec["mpi"].mpicc)

    def install(self, spec, prefix):
        with tempfile.TemporaryDirectory() as links:
            make(
                "install",
                f"PREFIX={prefix}",
                parallel=False,
                extra_env={"CARGO_BUILD_JOBS": str(make_jobs), "PATH": path_without_mpis(links)},
            )
        if spec.satisfies("+replay") and not find(prefix.lib.st, "st-engine"):
            raise InstallError(f"tools/mpis does not know what {spec['mpi'].mpicc} is")


def path_without_mpis(links):
    """PATH, for make to build for the MPI of MPICC only, not for each that it finds there.
    Directories that have one are replaced by directories of links below the given one."""
    path = []
    for number, directory in enumerate(filter(os.path.isdir, os.environ["PATH"].split(":"))):
        names = os.listdir(directory)
        others = [name for name in names if not name.startswith("mpi")]
        if len(others) < len(names):
            place = join_path(links, str(number))
            mkdirp(place)
            for name in others:
                os.symlink(join_path(directory, name), join_path(place, name))
            directory = place
        path.append(directory)
    return ":".join(path)
