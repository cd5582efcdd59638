"""Published tables and figures, recomputed and compared."""
