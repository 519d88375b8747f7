"""Codecs: how numbers are stored, and what is lost by it.

vsquant       per-vector scaled quantisation: `VectorFormat`, `quantize`, `Quantized`
calibration   the magnitude a coarse scale covers: `Calibration`, `calibrate`
vector_dot    the integer dot product of such operands: `VectorMac`, `dot`, `real`
zero_run      lists of values that are not zero: `encode`, `Lists`
boveda        widths for groups of values, in virtual columns: `encode`, `decode`, `footprint`
reference_codecs   what other codecs take for the same tensors: `CODECS`
"""
