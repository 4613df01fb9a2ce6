"""What a user may ask for, checked."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
from collections.abc import Mapping
from typing import Any

import torch

from toroid import _core

PRECISIONS = ("f32", "bf16")


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of ``torch.compile(..., backend="toroid", options={...})``.

    Attributes
    ----------
    strict : bool
        Raise `toroid.Unsupported` where a node or a graph would be left to PyTorch.
    threads : int
        Threads of every call; 0 follows ``torch.get_num_threads()`` at each call.
    freeze : bool
        Prepare weights once and again when they change.
    precision : str or None
        "f32" or "bf16"; None follows the environment (see `ambient_precision`).
    release_weights : bool
        Move the originals of packed weights out of memory, into a file that is read where
        something else needs them. For inference; graphs with gradients keep them.
    verbose : int
        1 reports each compiled graph on the logger "toroid".
    tune : bool
        Choose kernels by results of tuning, and tune at the first call what has none; see
        `toroid.tunable`. ``mode="max-autotune"`` says the same.
    reference : bool
        Run every node by itself and by its plain reference kernel, in one thread: to find out what
        is wrong, not to be fast. Nothing is fused, packed or prepared, whatever `freeze` says.
    """

    strict: bool = False
    threads: int = 0
    freeze: bool = True
    precision: str | None = None
    release_weights: bool = False
    verbose: int = 0
    reference: bool = False
    tune: bool = False


_MOST = 2**31 - 1  # an int of C
_BOOLS = ("strict", "freeze", "release_weights", "reference", "tune")


def parse(mode: str | None, options: Mapping[str, Any] | None, backend: str = "toroid") -> Options:
    """Check what ``torch.compile`` passed on to a backend of that name.

    Raises
    ------
    ValueError
        For an unknown name (with the closest known one) or a value of the wrong kind.
    toroid.Unsupported
        For a value that is right and that Toroid cannot serve.
    """
    if mode not in (None, "default", "max-autotune"):
        raise ValueError(
            f"backend {backend!r} has no mode {mode!r}; expected None, 'default' or "
            "'max-autotune': there are options={...}"
        )
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"backend {backend!r}: expected options as a mapping, got {options!r}")
    given = dict(options or {})
    if mode == "max-autotune":
        given.setdefault("tune", True)
    known = [field.name for field in dataclasses.fields(Options)]
    for name, value in given.items():
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
            raise ValueError(f"backend {backend!r} has no option {name!r}{hint}")
        _check(name, value)
    options = Options(**given)
    if options.release_weights and not options.freeze:
        raise ValueError("option 'release_weights' needs 'freeze': only packed weights can go")
    return options


def _check(name: str, value: Any) -> None:
    if name in _BOOLS and not isinstance(value, bool):
        raise ValueError(f"option {name!r}: expected True or False, got {value!r}")
    if name == "verbose" and isinstance(value, bool):
        return
    if name in ("threads", "verbose"):
        if type(value) is not int or value < 0:
            raise ValueError(f"option {name!r}: expected an integer of at least 0, got {value!r}")
        if value > _MOST:
            raise ValueError(f"option {name!r}: expected at most {_MOST}, got {value!r}")
    if name == "release_weights" and value and not _can_release():
        raise _core.Unsupported("option 'release_weights': this PyTorch's storages are closed")
    if name == "precision" and value is not None:
        if value not in PRECISIONS:
            raise ValueError(
                f"option 'precision': expected one of {', '.join(PRECISIONS)}, got {value!r}"
            )
        if not supports_precision(value):
            raise _core.Unsupported(f"option 'precision': no kernel for {value} on this machine")


def _can_release() -> bool:
    from toroid._torch import can_release

    return can_release()


@functools.cache
def supports_precision(precision: str) -> bool:
    """Whether graphs can be compiled with a precision here: asks C with the smallest graph."""
    if precision == "f32":
        return True
    from toroid._torch import attach

    attach()
    graph = _core.Graph()
    x = graph.add_input("x", "float32", [1], contiguous=True)
    graph.set_outputs([x], [None], [])
    try:
        graph.compile([], (), precision=precision)
    except _core.Unsupported:
        return False
    return True


def ambient_precision() -> str:
    """The precision that the surroundings ask for: the one place where they are read.

    ``TOROID_FPMATH``, then ``torch.set_float32_matmul_precision``, then oneDNN's
    ``DNNL_DEFAULT_FPMATH_MODE``. What this machine has no kernels for means f32.
    """
    wish = os.environ.get("TOROID_FPMATH", "").lower()
    if not wish:
        medium = torch.get_float32_matmul_precision() == "medium"
        mode = os.environ.get("DNNL_DEFAULT_FPMATH_MODE", "").upper()
        wish = "bf16" if medium or mode == "BF16" else "f32"
    return wish if wish in PRECISIONS and supports_precision(wish) else "f32"
