"""What makes or changes a workload in memory: filters, scenarios, generators, limits, load."""
