"""The jobs that wait in one pass: the problem, its objective, bounds, and CP-SAT on it."""
