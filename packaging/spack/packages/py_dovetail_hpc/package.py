from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyDovetailHpc(PythonPackage):
    """Batch-job scheduling for clusters: replays real traces under any policy, exactly and fast, and says what a Slurm
    would do under other settings."""

    pypi = "dovetail-hpc/dovetail_hpc-0.2.0.tar.gz"

    license("Apache-2.0")

    version("0.2.0")  # not published: `spack develop` takes a checkout, and a release adds sha256

    variant("studies", default=True, description="Pages, intervals and grids of replays")
    variant("dask", default=False, description="Studies on Dask")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.28:", type="build")

    with default_args(type=("build", "run")):
        depends_on("py-numba@0.61:")
        depends_on("py-numpy@2:")
        depends_on("py-polars@1.30:")
        depends_on("py-rich@13.9:")
        depends_on("py-typer@0.15:")
        depends_on("py-zstandard@0.23:")

    with when("+studies"), default_args(type=("build", "run")):
        depends_on("py-jinja2@3.1:")
        depends_on("py-matplotlib@3.10:")
        depends_on("py-pydantic@2.11:")
        depends_on("py-scipy@1.15:")

    with when("+dask"), default_args(type=("build", "run")):
        depends_on("py-distributed@2025.1:")
