"""Backends by name, and others made of them: in order, or one for each kind of graph.

The table of names is in C (``toroid/backend.h``). A plugin is a shared object
``toroid_backend_<name>.so`` in one of the folders of ``TOROID_BACKEND_PATH``.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toroid import _core

if TYPE_CHECKING:
    from toroid.compilers import Compiler

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
    return _by_handle(_core.backend_resolve(name))


def compose(*members: str | Callable[..., Any]) -> Backend:
    """Several backends as one: each graph goes to the first, then to the next where one refuses.

    Parameters
    ----------
    *members : str or callable
        At least one. Names as for `get`; compilers in Python as for `aot`. A member that fails is
        passed over like one that refuses.

    Returns
    -------
    callable
        For ``torch.compile(model, backend=...)``; the same members give the same object. Init hooks
        and options are those of the members. A graph that all refuse is left to PyTorch, unless the
        option ``strict`` is set. Which member took a graph is in the log "toroid" (level info) and
        in the attribute ``backend`` of the graphs of `toroid.explain`.

    Raises
    ------
    ValueError, RuntimeError
        As `get` does for the first name that is not to be had.
    TypeError
        For a member that is neither a name nor callable.
    """
    if all(isinstance(member, str) for member in members):
        return _by_handle(_core.backend_compose(members))
    from toroid.compilers import InOrder

    compilers = [_compiler(member, _core.backend_resolve) for member in members]
    return _keep("compose", members, lambda: _recipe(InOrder(compilers)))


def aot(
    fw: str | Callable[..., Any] = "toroid",
    bw: str | Callable[..., Any] | None = None,
    inference: str | Callable[..., Any] | None = None,
    *,
    partition: str | Callable[..., Any] = "min_cut",
    decompositions: Mapping[Any, Any] | Callable[[], Mapping[Any, Any]] | None = None,
) -> Backend:
    """A backend with a compiler for each kind of graph that AOTAutograd makes.

    A compiler is a name as for `get`, what `get` or `compose` returned, or a callable
    ``compile(gm, example_inputs)``. That one gets a graph of ATen calls over fake tensors and
    returns a callable: of one list, which it empties, if it has the attribute ``_boxed_call``; of
    the graph's inputs otherwise. It refuses a graph by NotImplementedError or `toroid.Unsupported`,
    which leaves the graph to PyTorch. If it has a parameter ``options``, it gets those of
    ``torch.compile``.

    Parameters
    ----------
    fw : str or callable
        Compiles forward graphs. Its init hook is that of the whole; the others' do not count.
    bw, inference : str or callable, optional
        Compile backward graphs, and those without gradients; `fw` by default.
    partition : str or callable
        Which results of the forward graph the backward graph gets: "min_cut" computes again what is
        cheap, "default" keeps all. Or a function like those of
        ``torch._functorch.partitioners``.
    decompositions : mapping or callable, optional
        From ops to what they are taken apart by, or a function without arguments that gives such a
        table at the first compilation. By default, what Toroid does not know is taken apart.

    Returns
    -------
    callable
        For ``torch.compile(model, backend=...)``; the same arguments give the same object, so make
        callables once. Options are Toroid's where a name is among the compilers.

    Raises
    ------
    ValueError, RuntimeError
        As `get` does for a name that is not to be had.
    ValueError, TypeError
        For another partition; for a compiler that is neither a name nor callable; for another kind
        of table.
    """
    if isinstance(partition, str) and partition not in ("min_cut", "default"):
        raise ValueError(
            f"toroid.aot: expected partition 'min_cut', 'default' or a callable, got {partition!r}"
        )
    if not (isinstance(partition, str) or callable(partition)):
        raise TypeError(
            "toroid.aot: expected partition 'min_cut', 'default' or a callable, got "
            f"{type(partition).__name__}"
        )
    if not (
        decompositions is None or isinstance(decompositions, Mapping) or callable(decompositions)
    ):
        raise TypeError(
            "toroid.aot: expected decompositions to be a mapping or a callable, got "
            f"{type(decompositions).__name__}"
        )
    forward = _compiler(fw, _core.backend_resolve)
    backward = forward if bw is None else _compiler(bw, _core.backend_find)
    without = forward if inference is None else _compiler(inference, _core.backend_find)

    def make() -> Any:
        from toroid import _torch
        from toroid.compilers import ByKind

        return _recipe(
            ByKind(forward, backward, without),
            _torch.partitioner(partition) if isinstance(partition, str) else partition,
            _lazily(decompositions),
        )

    return _keep("aot", (fw, bw, inference, partition, decompositions), make)


def _lazily(table: Any) -> Callable[[], Mapping[Any, Any]] | None:
    """A function that gives the table; what makes it is called once."""
    if table is None:
        return None
    return functools.cache(table) if callable(table) else lambda: table


def _recipe(*args: Any) -> Any:
    from toroid.backend import Recipe

    return Recipe(*args)


def _native(handle: Any) -> Compiler:
    from toroid.compilers import Native

    return Native(_core.backend_name(handle), handle)


def _compiler(given: Any, look_up: Callable[[str], Any]) -> Compiler:
    """The compiler that a name or a callable stands for."""
    from toroid import compilers

    if isinstance(given, str):
        return _native(look_up(given))
    if not callable(given):
        raise TypeError(f"expected the name of a backend or a callable, got {given!r}")
    return getattr(given, "_toroid_compiler", None) or compilers.Python(given)


# ------------------------------------------------------------------ the same gives the same

_kept: dict[Any, Backend] = {}


def _keep(what: str, arguments: Sequence[Any], recipe: Callable[[], Any]) -> Backend:
    """The backend that was made of these arguments before, or a new one."""
    from toroid import backend

    key = (what, *map(_identity, arguments))
    made = _kept.get(key)
    if made is None:
        # Of threads that come at once, all get what the first one made. What has no hash is kept
        # alive by the backend, so that its number stays its own.
        made = _kept.setdefault(key, backend.by_recipe(recipe()))
    return made


def _identity(argument: Any) -> Any:
    try:
        hash(argument)
    except TypeError:
        return id(argument)
    return argument


def _by_handle(handle: Any) -> Backend:
    from toroid import backend

    name = _core.backend_name(handle)
    ours = (backend.toroid, backend.toroid_debug, backend.toroid_reference)
    built_in = next((f for f in ours if f.__name__ == name), None)
    return built_in or _keep("name", [name], lambda: _recipe(_native(handle)))
