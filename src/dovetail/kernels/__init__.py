"""Compiled code: arrays in, arrays out. See README.md in this folder for the calling convention."""
