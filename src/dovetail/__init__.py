"""Dovetail decides when and where batch jobs run on a cluster."""

__version__ = "0.1.0"
