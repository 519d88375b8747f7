"""Arithmetic of MAC units on bit patterns, equal in every bit to the hardware in `rtl/core`.

formats          what a pattern of bits stands for: `FloatFormat`, `IntegerFormat`
dot_product      the unit that tensor cores and vector MACs share: `DotProduct`
float_datapath   how it sums floats: `FloatRules`, and the widths that follow, `FloatDatapath`
float_dot        that datapath with arrays
factors          how a product wider than an FPGA's multiplier is cut: `parts_of`
cases            random operands aimed at corners, for tests
"""
