"""Cores that are walked by tiles, stepped cycle by cycle from their contract: no closed form.

The model's timing is closed forms and a scan over tiles; where the off-chip memory's channel keeps
words waiting, no simulated core is behind it that could say whether it is right. This is written
apart from it, as plainly as can be, and `archsim verify` compares both
(`rtl.tile_paths`).

core.py         the units: dispatcher, loaders, output stage, and the queues between
array.py        the folds of a tile: stationary loads and streams, word by word
channel.py      the off-chip memory: transfers in the order of the program
output_rows.py  the rows in which outputs leave, and the words that they complete
"""
