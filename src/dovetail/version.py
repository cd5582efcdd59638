"""The version, apart: whoever prints it need not import anything else."""

__version__ = "0.1.0"
