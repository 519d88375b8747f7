"""The sparse training machine: skips operands that are zero and outputs that nobody reads.

design      the record, and its ports
window      which operands a lane may take ahead of its turn
tiling      a layer cut into blocks
cutting     which cut it gets
dealing     which columns go to which PE
keeping     which operands stay in the loaders' scratchpads
vectors     a layer as rows and columns of dot products
kernels     what lanes choose in a cycle
fields      the windows of many dot products at once
block_work  how long those of each block take
timing      when words cross
estimate    cycles from densities alone
answer      a layer in full
model       the seam
components  what it is made of
"""
