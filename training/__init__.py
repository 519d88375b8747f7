"""Training of networks whose weights bear bit errors; PyTorch computes the gradients.

recipe      what is trained, and how: `Recipe`
training    the descent, in numpy: `Training`
gradients   losses and gradients, the one file that imports PyTorch: `TorchGradients`
checkpoint  a training under way in files, so that it goes on after whatever ended it
shipped     the models that come with archsim
cli         `archsim train`
"""
