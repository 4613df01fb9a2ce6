"""AOTAutograd's cache, with Toroid's keys and files: every contact with it, as `_torch` has others.

AOTAutograd can keep what it made of a captured graph (what aliases and is written, the wrappers
round the compiled graphs) together with compiled graphs that know how to be pickled. That is all
used as it is. Two things are replaced while a backend of Toroid compiles:

- The key. PyTorch's needs half of Inductor and a hash of PyTorch's sources, which takes longer than
  what it would save; here the same pickler hashes the same graph, settings and inputs, with
  what else decides about Toroid's graphs in place of what decides about Inductor's.
- The files, which are those of TOROID_CACHE_DIR: checked, and limited in size.

With another PyTorch than those that this was tried on, nothing is kept: what is replaced is
nobody's interface, and an entry that is not whole is worse than none.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import hashlib
import inspect
import logging
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch._functorch import config
from torch._functorch._aot_autograd import autograd_cache
from torch._functorch.aot_autograd import SerializableAOTDispatchCompiler
from torch._inductor.output_code import OutputCode
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule

from toroid import _core, _sizes, _torch

log = logging.getLogger("toroid")

_PYTORCH = Path(torch.__file__).parent
_TRIED = ("2.13.", "2.14.")
#: Entries of one key that differ in what they guard of symbolic sizes.
_MOST = 8
#: Libraries whose ops are PyTorch's own: nobody's edit of a source file changes what they mean.
LIBRARIES = {"aten", "prim", "prims", "_c10d_functional"}


class Session(Protocol):
    """One compilation."""

    #: What decides about its graphs beside what PyTorch captures and how it is set.
    key: str
    #: Number of the entry that the last lookup found missing; None where all are there.
    room: int | None

    def load(self, kind: str, data: bytes) -> _torch.Boxed:
        """The compiled graph of this kind that `data` describes."""


_session: contextvars.ContextVar[Session] = contextvars.ContextVar("session")


class Output(OutputCode):
    """A compiled graph: it runs, and is pickled as `data`.

    Parameters
    ----------
    kind : str
        "inference", "forward" or "backward".
    run : callable
        Takes one list.
    data : bytes, optional
        For `Session.load`. Without, nothing of the compilation is kept.
    """

    def __init__(self, kind: str, run: _torch.Boxed, data: bytes | None) -> None:
        self.kind, self.run, self.data = kind, run, data
        self._boxed_call = True  # of the object: wrappers look into __dict__

    def __call__(self, inputs: Sequence[Any]) -> Any:
        return self.run(inputs)

    def prepare_for_serialization(self) -> None:
        """AOTAutograd made a copy, which it will pickle."""
        if self.data is None:
            raise autograd_cache.BypassAOTAutogradCache(f"a {self.kind} graph cannot be kept")
        self.run = None

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
        """AOTAutograd loaded it."""
        self.run = _session.get().load(self.kind, self.data)


_CONFIG = {
    "enable_autograd_cache": True,
    "force_autograd_cache": False,
    "enable_remote_autograd_cache": False,
    # Compiled graphs are in the entry, not in a cache of Inductor's.
    "bundled_autograd_cache": True,
    # An entry is whole, backward graph and all, by the end of the compilation.
    "force_non_lazy_backward_lowering": True,
    "strict_autograd_cache": False,
}


def usable() -> bool:
    """Whether this PyTorch is one that was tried, and the caller leaves its caches alone."""
    return (
        torch.__version__.startswith(_TRIED)
        # Whoever asks for one of these has an own idea of what is kept.
        and not torch.compiler.config.force_disable_caches
        and not config.bypass_autograd_cache_key
        and not torch._dynamo.config.caching_precompile
    )


@contextlib.contextmanager
def using(session: Session) -> Iterator[None]:
    """What AOTAutograd compiles meanwhile, in this thread, is looked for and kept."""
    _replace()
    with config.patch(**_CONFIG):
        token = _session.set(session)
        try:
            yield
        finally:
            _session.reset(token)


@functools.cache
def _replace() -> None:
    """Put Toroid's keys and files in place; outside of a session they are PyTorch's as before."""
    store = autograd_cache.AOTAutogradCache
    for place, name, ours in (
        (autograd_cache, "autograd_cache_key", _key),
        (store, "iterate_over_candidates", _candidates),
        (store, "_write_to_local_cache", _write),
    ):
        setattr(place, name, staticmethod(_in_session(ours, getattr(place, name))))


def _in_session(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (theirs if _session.get(None) is None else ours)(*args, **kwargs)

    return call


def compiler(function: Callable[[GraphModule, Sequence[Any]], Output]) -> _torch.Compiler:
    """A compiler whose results AOTAutograd knows that it can keep."""
    return SerializableAOTDispatchCompiler(Output, function)


# ------------------------------------------------------------------ files


def _candidates(local: bool, remote_cache: Any, key: str) -> Iterator[tuple[Any, bytes, bool]]:
    session = _session.get()
    session.room = None
    for number in range(_MOST):
        content = _core.store_find(f"{key} {number}")
        if content is None:
            session.room = number
            return
        try:
            entry = pickle.loads(content)
        except Exception as error:
            log.info("kept compilation %s %d does not load: %s", key, number, error)
            continue
        yield entry, content, True


def _write(key: str, content: bytes) -> None:
    """Of the key that was looked for last."""
    number = _session.get().room
    if number is not None:
        _core.store_put(f"{key} {number}", content)


# ------------------------------------------------------------------ keys


def _key(
    gm: GraphModule, example_inputs: Sequence[Any], aot_config: Any, extra: Any = None, *more: Any
) -> tuple[str, list[str]]:
    """In place of `autograd_cache.autograd_cache_key`.

    2.14 has one argument more, which its details hash.
    """
    reason = _unsafe(gm) or _unsafe_inputs(example_inputs) or _unsafe_surroundings()
    if reason is not None:
        raise autograd_cache.BypassAOTAutogradCache(reason)
    with autograd_cache.sanitize_gm_for_cache(gm):
        autograd_cache.check_cacheable(gm)
        details = _Details(gm, example_inputs, aot_config, {}, *more)
        return _Pickler(gm).get_hash(details), []


class _Pickler(autograd_cache.AOTAutogradCachePickler):
    def get_hash(self, obj: Any) -> str:
        """The base's, but silent on what it cannot pickle: a reason to keep nothing."""
        self.dump(obj)
        return hashlib.sha256(self._stream.getvalue()).hexdigest()


class _Details(autograd_cache.AOTAutogradCacheDetails):
    """What PyTorch hashes, with Toroid's part instead of Inductor's."""

    def _init_fx_graph_hash_details(
        self, gm: GraphModule, example_inputs: Sequence[Any], fx_config: Any
    ) -> None:
        storages: dict[int, int] = {}
        self.gm, self.example_inputs = gm, list(example_inputs)
        self.places = [_place(x, storages) for x in example_inputs if isinstance(x, torch.Tensor)]
        self.settings = _settings()
        self.session = _session.get().key


def _unsafe(gm: GraphModule) -> str | None:
    """What in a graph the key does not see through, beside what PyTorch's own check finds."""
    if not isinstance(gm, GraphModule):
        return f"a {type(gm).__name__}"
    if hasattr(gm, "saved_tensors_hooks_pack_0"):
        return "hooks of saved tensors"
    for node in gm.graph.nodes:
        if node.op in ("get_attr", "call_module"):
            return f"{node.name}: the graph holds a tensor or a module"
        if node.meta.get("custom"):
            return f"{node.name}: annotated"
        if _torch.is_python_float(node):
            return f"{node.name}: a float that Dynamo has not guarded on"
        target = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            return f"{target}: it runs other graphs"
        if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            library = str(target).partition(".")[0]
            if library not in LIBRARIES:
                return f"{target}: what it means may be edited"
        elif isinstance(target, types.FunctionType) and not _is_pytorchs(target):
            return f"{target}: what it does may be edited"
    return None


def _is_pytorchs(function: types.FunctionType) -> bool:
    """Whether a function is what the name says that PyTorch's check and the key go by.

    Anyone can give a function another `__module__`, or put one into PyTorch's.
    """
    module = sys.modules.get(function.__module__)
    code = Path(inspect.unwrap(function).__code__.co_filename)
    return getattr(module, function.__name__, None) is function and code.is_relative_to(_PYTORCH)


def _unsafe_inputs(example_inputs: Sequence[Any]) -> str | None:
    for i, value in enumerate(example_inputs):
        if isinstance(value, torch.SymInt):
            if _sizes.is_ragged(value) or value.node.hint is None:
                return f"input {i}: a size that is not known before the graph runs"
        elif type(value) is not FakeTensor and type(value) is not int:
            return f"input {i}: a {type(value).__name__}"
    return None


def _unsafe_surroundings() -> str | None:
    if config.joint_custom_pass is not None:
        return "a pass of the user's"
    if torch._dynamo.compiled_autograd.in_compiled_autograd_region:
        return "compiled autograd"
    return None


def _place(tensor: torch.Tensor, storages: dict[int, int]) -> tuple[Any, ...]:
    """Where a tensor lies and how it hangs on others: PyTorch's key leaves that out."""
    storage = tensor.untyped_storage()
    return (
        str(tensor.storage_offset()),
        str(storage.nbytes()),
        storages.setdefault(storage._cdata, len(storages)),
        tensor._is_view(),
        tensor.is_leaf,
        tensor.is_inference(),
    )


def _settings() -> tuple[Any, ...]:
    """Settings that what AOTAutograd makes of an op may depend on."""
    return (
        torch.__version__,
        torch.version.git_version,
        torch.get_default_dtype(),
        str(torch.get_default_device()),
        torch.is_inference_mode_enabled(),
        torch.get_float32_matmul_precision(),
        torch._C._get_math_sdp_enabled(),
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        torch._C._get_mkldnn_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
    )


# ------------------------------------------------------------------ pickles


def plainly() -> contextlib.AbstractContextManager[None]:
    """Tensors are what they are meanwhile, though a trace with fake ones may be under way."""
    from torch.utils._python_dispatch import _disable_current_modes

    return _disable_current_modes()


def op_of_name(name: str) -> torch._ops.OpOverload:
    """The op that `str` gives this name: "aten.addmm.default"."""
    library, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, library), packet), overload)
