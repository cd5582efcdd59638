"""One day planned for profit: the problem, its searches, and CP-SAT on it."""
