"""One seeded simulation: random cases, each judged in many ways. `python -m tests.simulate` (docs/testing.md)."""
