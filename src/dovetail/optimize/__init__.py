"""Solvers: the best schedule of one pass under an objective, and values that no schedule can beat."""
