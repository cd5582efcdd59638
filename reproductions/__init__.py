"""Published tables and figures made again, and result pages of our own: a folder each. README.md says how they work."""
