"""Memories that keep check bits beside their words (docs/low-voltage.md).

code        linear codes: parity, and codes that correct one error and detect two
coding      what check bits do to words, whatever keeps them
layout      where they lie
scratchpad  either, around any other scratchpad
bank        around a bank
stream      around a sparse core's lists
"""
