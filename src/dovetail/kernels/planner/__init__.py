"""The planner: a search over orders, for waits, money and whole days."""
