"""SHOW: schedules and comparisons as one self-contained page."""
