"""What the harness lets pass, at most thirty entries: patterns of OpInfo names, with reasons."""

from __future__ import annotations

from fnmatch import fnmatchcase

#: Not run at all.
NO_VALUE: dict[str, str] = {
    "empty*": "memory as it comes",
    "new_empty*": "memory as it comes",
}

#: Samples that AOTAutograd cannot capture; those that it can are compared as any others.
NOT_TRACEABLE: dict[str, str] = {
    "__getitem__": "a mask as index: the result's size depends on data",
    "allclose": "gives a Python bool",
    "argwhere": "the result's size depends on data",
    "bincount": "the result's size depends on data",
    "combinations": "selects by a mask: the size depends on data",
    "corrcoef": "compares weights in Python",
    "cov": "compares weights in Python",
    "equal": "gives a Python bool",
    "index_fill": "its backward formula asks for unique indices",
    "index_put": "a mask as index, whose gradient's size depends on data",
    "item": "gives a Python number",
    "linalg.lstsq*": "the size of the residuals depends on the rank",
    "masked_select": "the result's size depends on data",
    "narrow": "a start that is a tensor is read in Python",
    "nn.functional.ctc_loss": "the size of its state depends on the lengths",
    "nn.functional.gaussian_nll_loss": "looks for negative variances in Python",
    "nn.functional.one_hot": "the number of classes depends on data",
    "nonzero": "the result's size depends on data",
    "repeat_interleave": "the result's size depends on the repeats",
    "sparse.*": "makes sparse tensors of its own",
    "tensor_split": "places to split at that are a tensor are read in Python",
    "to_sparse": "its backward formula has no fake kernel",
    "unique*": "the result's size depends on data",
}


def matches(name: str, entries: dict[str, str]) -> bool:
    """Whether one of the entries is for this OpInfo."""
    return any(fnmatchcase(name, pattern) for pattern in entries)
