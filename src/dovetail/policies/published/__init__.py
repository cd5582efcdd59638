"""The schedulers of the papers, as their authors describe them."""
