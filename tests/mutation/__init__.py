"""How strong the proof is: faults put into RTL and model mechanically, and how many are caught.

python -m tests.mutation systolic                  # a sample of 300, in the RTL
python -m tests.mutation scnn --side model --sample 20 --seed 7
python -m tests.mutation vsq --side figures         # in areas and energies, for the fast tests
python -m tests.mutation scnn --again              # those not caught, with the cases of today
python -m tests.mutation scnn equal                # those not caught: the solver is asked
python -m tests.mutation vsq hung --side model     # those that never end: verify is to say so
python -m tests.mutation scnn tests                # those not caught, on the tests of their units
python -m tests.mutation scnn report               # what was found, by unit, and the survivors
python -m tests.mutation all page                  # writes docs/proof.md

operators.py     what is changed: one small edit of a source text a mutant
sources.py       where: the lines that a design's RTL, or its model, runs through
live.py          a fault put into functions that are imported already
emission.py      a faulty design's RTLIL, of which only the touched modules are made anew
schemata.py      many faulty variants of a module in one, which an input chooses (netlist.py)
variants.py      the same of whole designs
batch.py         faults of the RTL, a hundred in one simulator, against `archsim verify`'s cases
quick_build.py   a simulator in a second or two; a sound one is kept
trial.py         one faulty design in a simulator of its own
model_trials.py  one fault in the model; the RTL runs where an answer changes
endless.py       one with which the model does not end, by `archsim verify` itself
figures.py       one in what figures are made of, against the fast tests of these
equality.py      the solver, asked whether a survivor does anything
unit_tests.py    a survivor against the fast tests of its unit; plugin.py puts the fault in
campaign.py      many, side by side (pool.py), each bounded in time, resumed after a kill
subjects.py      the small designs that they are tried on, and units with designs of their own
found/           what is known of faults
equivalent.toml  survivors that change nothing, with reasons
report.py, page.py   the score, as text and as docs/proof.md
"""
