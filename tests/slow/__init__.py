"""Slow, obvious versions of the policies. The compiled kernels are held against them."""
