"""Which designs are computed next, by every method of `archsim.sweeps.search.METHODS`."""

from archsim.sweeps.samplers.sampler import Sampler, sampler_of

__all__ = ["Sampler", "sampler_of"]
