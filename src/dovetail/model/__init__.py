"""The nouns. Plain, frozen, without input or output."""
