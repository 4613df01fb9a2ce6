"""Backends by name: what is built in, and plugins written in C.

The table itself is in C (``toroid/backend.h``). A plugin is a shared object
``toroid_backend_<name>.so`` in one of the folders of ``TOROID_BACKEND_PATH``.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from toroid import _core

Backend = Callable[..., Any]


def list(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> builtins.list[str]:
    """Names of backends in order, those of plugins included; loads none.

    Parameters
    ----------
    exclude_tags : sequence of str, optional
        Leaves out what has one of them. The tags of a plugin are known once it is loaded.
    """
    return _core.backend_list(tuple(exclude_tags or ()))


def get(name: str) -> Backend:
    """The backend of that name, for ``torch.compile(model, backend=...)``.

    Loads a plugin where needed and calls the backend's init hook. The same name gives the same
    object, so that PyTorch compiles nothing anew.

    Raises
    ------
    ValueError
        For a name that is not known, with the closest ones; for a plugin that is refused.
    RuntimeError
        Where the init hook fails.
    """
    return _callable(_core.backend_resolve(name))


def compose(*names: str) -> Backend:
    """Several backends as one: each graph goes to the first, then to the next where one refuses.

    Parameters
    ----------
    *names : str
        As for `get`, at least one. A backend that fails is passed over like one that refuses.

    Returns
    -------
    callable
        For ``torch.compile(model, backend=...)``; the same names give the same object. Init hooks
        and options are those of the members. A graph that all refuse is left to PyTorch, unless the
        option ``strict`` is set. Which member took a graph is in the log "toroid" (level info) and
        in the attribute ``backend`` of the graphs of `toroid.explain`.

    Raises
    ------
    ValueError, RuntimeError
        As `get` does for the first name that is not to be had.
    """
    return _callable(_core.backend_compose(names))


_callables: dict[str, Backend] = {}


def _callable(handle: Any) -> Backend:
    from toroid import backend

    name = _core.backend_name(handle)
    ours = (backend.toroid, backend.toroid_debug, backend.toroid_reference)
    built_in = next((f for f in ours if f.__name__ == name), None)
    made = built_in or _callables.get(name) or backend.by_handle(name, handle)
    # Of threads that come at once, all get what the first one made.
    return _callables.setdefault(name, made)
