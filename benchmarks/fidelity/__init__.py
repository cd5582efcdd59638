"""How near our Slurm is to the real one, cycle by cycle: `python -m benchmarks.fidelity`."""
