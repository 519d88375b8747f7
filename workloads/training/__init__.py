"""Training as layers: what back-propagation computes of a network's forward layers.

pass_layer  one product of a pass: its layer, its operands from forward tensors, where it goes
input_gradient, weight_gradient  BP and WG of a layer, with shapes of their own
"""
