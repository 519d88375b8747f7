"""Codecs: how numbers are stored, and what is lost by it.

vsquant       per-vector scaled quantisation: `VectorFormat`, `quantize`, `Quantized`
calibration   the magnitude a coarse scale covers: `Calibration`, `calibrate`
vector_dot    the integer dot product of such operands: `VectorMac`, `dot`, `real`
"""
