"""What Slurm says, and wants to hear. Knows no policy."""
