"""Memories that keep check bits beside their words (docs/low-voltage.md).

code        linear codes: parity, and codes that correct one error and detect two
scratchpad  either, around any other scratchpad
"""
