"""One scheduling pass, for each kind of rule."""
