"""Compilations that the next process finds on disk, where TOROID_CACHE_DIR names a folder.

A process that captures a graph which an earlier one compiled takes the lowered graph from there:
AOTAutograd's part and the import of its calls fall away, the passes run as always.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import logging
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from toroid import _aot_cache, _core, _torch
from toroid.compilers import Job, Native
from toroid.lower import Lowered
from toroid.options import ambient_precision

log = logging.getLogger("toroid")

#: Bytes of constants that an entry holds at most; larger ones are weights by another name.
_MOST_CONSTANTS = 16 << 20
#: Options that change no graph.
_APART = ("verbose", "tune", "threads")


class NotKept(Exception):
    """A graph that only this process can run; the message is the reason."""


def dump(lowered: Lowered) -> bytes:
    """A lowered graph, not compiled yet, as bytes.

    Raises
    ------
    NotKept
        Where what PyTorch runs cannot be named, or constants are large.
    """
    size = sum(c.untyped_storage().nbytes() for c in lowered.constants)
    if size > _MOST_CONSTANTS:
        raise NotKept(f"constants of {size} bytes")
    stream = io.BytesIO()
    try:
        with _aot_cache.plainly():
            _Pickler(stream).dump(
                (
                    *lowered.graph.to_bytes(),
                    lowered.callables,
                    tuple(c.detach() for c in lowered.constants),
                    lowered.externals,
                )
            )
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise NotKept(str(error)) from error
    return stream.getvalue()


def load(data: bytes) -> Lowered:
    """What `dump` was given."""
    with _aot_cache.plainly():
        graph, returns, callables, constants, externals = pickle.loads(data)
    return Lowered(_core.Graph.from_bytes(graph, returns), callables, constants, externals)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch._ops.OpOverload):
            if obj.namespace not in _aot_cache.LIBRARIES:
                raise pickle.PicklingError(f"{obj} is not one of PyTorch's own ops")
            return _aot_cache.op_of_name, (str(obj),)
        if isinstance(obj, torch._ops.HigherOrderOperator | torch.nn.Module):
            raise pickle.PicklingError(f"it holds a {type(obj).__name__}")
        return NotImplemented


class Session:
    """How the graphs of one compilation are kept, and come back.

    Parameters
    ----------
    compiler : Native
        Compiles them.
    job : Job
        What they share.
    compile : callable
        Of a graph, its inputs, and ``job=`` and ``kind=``: to something that runs.
    finish : callable
        Of a lowered graph and ``kind=``: to the same.
    """

    def __init__(
        self,
        compiler: Native,
        job: Job,
        compile: Callable[..., _torch.Boxed],
        finish: Callable[..., _torch.Boxed],
    ) -> None:
        self._job = dataclasses.replace(job, lowered=self._note)
        self._compile = compile
        self._finish = finish
        self._data: bytes | None = None
        self._tokens = False
        self.room: int | None = None
        options = dataclasses.asdict(job.options)
        self.key = repr(
            (
                _core.build(),
                compiler.name,
                sorted((k, v) for k, v in options.items() if k not in _APART),
                ambient_precision(),
                _core.machine()["features"],
            )
        )

    def _note(self, lowered: Lowered) -> None:
        try:
            if self._tokens:
                # AOTAutograd passes them by a wrapper that it does not put round what it loads.
                raise NotKept("side effects in order")
            self._data = dump(lowered)
        except NotKept as reason:
            log.log(
                logging.WARNING if self._job.options.verbose else logging.INFO,
                "a graph is not kept in TOROID_CACHE_DIR: %s",
                reason,
            )

    def compile(
        self, gm: GraphModule, example_inputs: Sequence[Any], kind: str
    ) -> _aot_cache.Output:
        """Compile a graph that is not there yet."""
        self._data = None
        self._tokens = any(_torch.is_effect(node.target) for node in gm.graph.nodes)
        run = self._compile(gm, example_inputs, job=self._job, kind=kind)
        return _aot_cache.Output(kind, run, self._data)

    def compiler(self, kind: str) -> _torch.Compiler:
        """For `toroid._torch.run_aot`, within `keeping`."""
        return _aot_cache.compiler(functools.partial(self.compile, kind=kind))

    def keeping(self) -> contextlib.AbstractContextManager[None]:
        """What is compiled meanwhile is looked for, and kept."""
        return _aot_cache.using(self)

    def load(self, kind: str, data: bytes) -> _torch.Boxed:
        """Compile what an earlier process lowered."""
        return self._finish(load(data), kind=kind)
