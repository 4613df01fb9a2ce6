"""Toroid makes PyTorch models fast on CPUs: ``torch.compile(model, backend="toroid")``.

Importing this package imports neither PyTorch nor a model; the first compile does.
"""

from __future__ import annotations

from typing import Any

from toroid import _core, backends, tunable
from toroid.backends import aot, compose
from toroid.report import explain

Unsupported = _core.Unsupported

__version__ = "0.1.0"
__all__ = [
    "Unsupported",
    "__version__",
    "aot",
    "backends",
    "compose",
    "explain",
    "info",
    "profile",
    "refresh",
    "stats",
    "trim",
    "tunable",
]


def refresh(model: Any = None) -> None:
    """Make stale all that was made from weights; each is made again at its next use.

    Needed after writes that PyTorch's version counters do not see: through numpy, DLPack or raw
    memory. Returns at once; the next call of each compiled model packs its weights again.

    Parameters
    ----------
    model : torch.nn.Module, optional
        Taken for readability: what was made from the weights of other models is stale too.

    Examples
    --------
    >>> model.weight.detach().numpy()[:] = 0
    >>> toroid.refresh(model)
    """
    _core.refresh()


def trim() -> None:
    """Give the working memory of compiled graphs that do not run back to the system.

    What was not used for ten seconds goes back by itself when another graph runs; this is for
    processes that then do nothing. Packed weights stay.
    """
    _core.trim()


def stats() -> dict[str, int]:
    """Counts of the process-wide table of packed weights.

    Returns
    -------
    dict
        ``frozen_entries``, the results that are kept; ``frozen_bytes``, their memory in bytes;
        ``mapped_bytes``, how much of it is mapped from files of TOROID_CACHE_DIR;
        ``frozen_packs``, how many results were made since the process began;
        ``released_bytes`` of originals that option ``release_weights`` has moved out of memory.
    """
    return _core.stats()


def info() -> Any:
    """Look at the machine: CPU, instruction sets in use, caches, threads.

    Returns
    -------
    toroid.machine.Info
        Prints as a few lines.

    Examples
    --------
    >>> print(toroid.info())
    """
    from toroid.machine import info as look

    return look()


def profile() -> Any:
    """Record the time of every step that runs inside the block.

    Returns
    -------
    toroid.profiling.Profile
        A context manager that prints as a table and saves traces for Perfetto. One block at a
        time: entering a second one raises ValueError.

    Examples
    --------
    >>> with toroid.profile() as p:
    ...     compiled(x)
    >>> print(p)
    """
    from toroid.profiling import Profile

    return Profile()
