"""How strong the proof is: faults put into RTL and model mechanically, and how many are caught.

python -m tests.mutation systolic                  # a sample of 300, in the RTL
python -m tests.mutation scnn --side model --sample 20 --seed 7
python -m tests.mutation scnn --report             # what was found, by unit, and the survivors

operators.py   what is changed: one small edit of a source text a mutant
sources.py     where: the lines that a design's RTL, or its model, runs through
trial.py       one mutant against the cases of `archsim verify`
campaign.py    many, side by side, each bounded in time, resumed after a kill
subjects.py    the small designs that they are tried on
report.py      the score
"""
