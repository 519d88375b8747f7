"""Sparse cores: layers mapped to a grid of PEs, their lists, and when everything happens."""
