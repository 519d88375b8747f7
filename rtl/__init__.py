"""The designs in Amaranth, and the proof that they equal their models."""
