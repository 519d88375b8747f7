"""Training of networks: of weights that bear bit errors, of others for the zeros of their steps,
and under cases of dropout; PyTorch computes the gradients.

recipe      what is trained, and how: `Recipe`
training    the descent, in numpy: `Training`
gradients   losses and gradients, by PyTorch: `TorchGradients`
checkpoint  a training under way in files, so that it goes on after whatever ended it
shipped     the models that come with archsim
cli         `archsim train`
flow_step   steps of a network whose flow is known, and their zeros; capture, capture_cli: `archsim
            capture`
text, language, language_gradients, language_cli    a small language model under dropout
"""
