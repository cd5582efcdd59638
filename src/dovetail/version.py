"""The version, apart: to print it, nothing else need be imported."""

__version__ = "0.2.0"
