"""The ops that random programs are made of: one row each, with a weight and a function.

The order of the rows is part of what a seed means.
"""

import itertools

from fuzz.ops import contractions, indexing, pointwise, reductions, views

ROWS = [
    *pointwise.ROWS,
    *reductions.ROWS,
    *views.ROWS,
    *contractions.ROWS,
    *indexing.ROWS,
]
#: Running totals of the weights.
TOTALS = list(itertools.accumulate(r.weight for r in ROWS))
