"""How strong the proof is: faults put into RTL and model mechanically, and how many are caught.

python -m tests.mutation systolic                  # a sample of 300, in the RTL
python -m tests.mutation scnn --side model --sample 20 --seed 7
python -m tests.mutation vsq --side figures         # in areas and energies, for the fast tests
python -m tests.mutation scnn --again              # those not caught, with the cases of today
python -m tests.mutation scnn tests                # those not caught, on the tests of their units
python -m tests.mutation scnn report               # what was found, by unit, and the survivors
python -m tests.mutation all page                  # writes docs/proof.md

operators.py     what is changed: one small edit of a source text a mutant
sources.py       where: the lines that a design's RTL, or its model, runs through
emission.py      a faulty design's Verilog, of which only the touched modules are made anew
quick_build.py   a simulator of it in a second or two
trial.py         one mutant against the cases of `archsim verify`
figures.py       one in what figures are made of, against the fast tests of these
equality.py      the solver, asked whether a survivor does anything
unit_tests.py    a survivor against the fast tests of its unit; plugin.py puts the fault in
campaign.py      many, side by side, each bounded in time, resumed after a kill; found/ keeps them
subjects.py      the small designs that they are tried on
equivalent.toml  survivors that change nothing, with reasons
report.py, page.py   the score, as text and as docs/proof.md
"""
