from spack_repo.builtin.packages.py_polars.package import PyPolars as Known

from spack.package import *


class PyPolars(Known):
    """Spack's own recipe ends at 1.29.0, which writes no metadata into Parquet files."""

    version("1.32.0", sha256="b01045981c0f23eeccfbfc870b782f93e73b74b29212fdfc8aae0be9024bc1fb")
