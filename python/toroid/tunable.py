"""Measured choice of kernels: the names of ``torch.cuda.tunable``, for all operators on the CPU.

Everything here forwards to C (``toroid/tune.h``). A variable ``TOROID_TUNABLEOP_<NAME>`` in the
environment wins over what a function sets, and is read whenever it is needed.
"""

from __future__ import annotations

import dataclasses
import glob
import importlib.resources
import os
from collections.abc import Callable, Iterable

from toroid import _core

#: Called with operator, params, solution, ms by Default, ms by the solution, why it failed or "",
#: how many are done and how many there are.
Report = Callable[[str, str, str, float, float, str, int, int], object]

__all__ = [
    "Tuned",
    "enable",
    "get_filename",
    "get_max_tuning_duration",
    "get_max_tuning_iterations",
    "get_providers",
    "get_results",
    "get_rotating_buffer_size",
    "get_validators",
    "is_enabled",
    "mgpu_tune_gemm_in_file",
    "provider_folder",
    "read_file",
    "record_untuned_enable",
    "record_untuned_is_enabled",
    "set_filename",
    "set_max_tuning_duration",
    "set_max_tuning_iterations",
    "set_numerical_check_tolerances",
    "set_providers",
    "set_rotating_buffer_size",
    "tune_gemm_in_file",
    "tune_operators_in_file",
    "tune_operators_in_files",
    "tuning_enable",
    "tuning_is_enabled",
    "write_file",
]


def enable(val: bool = True) -> None:
    """Use known results (``ENABLED``); with tuning on, tune what has none. Off at first."""
    _core.tune_set("ENABLED", str(int(val)))


def is_enabled() -> bool:
    """Whether known results are used."""
    return _core.tune_get("ENABLED") == "1"


def tuning_enable(val: bool = True) -> None:
    """Tune operators that have no result (``TUNING``). On at first; nothing without `enable`."""
    _core.tune_set("TUNING", str(int(val)))


def tuning_is_enabled() -> bool:
    """Whether operators without a result are tuned."""
    return _core.tune_get("TUNING") == "1"


def record_untuned_enable(val: bool = True) -> None:
    """Append operators that run without a result to a list (``RECORD_UNTUNED``)."""
    _core.tune_set("RECORD_UNTUNED", str(int(val)))


def record_untuned_is_enabled() -> bool:
    """Whether operators that run without a result are listed."""
    return _core.tune_get("RECORD_UNTUNED") == "1"


def set_max_tuning_duration(duration: float) -> None:
    """Limit the time of timing one candidate, in milliseconds (``MAX_TUNING_DURATION_MS``)."""
    _core.tune_set("MAX_TUNING_DURATION_MS", str(duration))


def get_max_tuning_duration() -> float:
    """Milliseconds that timing one candidate may take."""
    return float(_core.tune_get("MAX_TUNING_DURATION_MS"))


def set_max_tuning_iterations(iterations: int) -> None:
    """Limit the runs of one candidate (``MAX_TUNING_ITERATIONS``)."""
    _core.tune_set("MAX_TUNING_ITERATIONS", str(iterations))


def get_max_tuning_iterations() -> int:
    """Runs that timing one candidate may take."""
    return int(_core.tune_get("MAX_TUNING_ITERATIONS"))


def set_rotating_buffer_size(buffer_size: int) -> None:
    """Set the memory of operand copies in MiB (``ROTATING_BUFFER_SIZE``).

    0 times with one copy, which stays in the caches; -1, the default, takes as many copies as it
    takes to exceed them.
    """
    _core.tune_set("ROTATING_BUFFER_SIZE", str(buffer_size))


def get_rotating_buffer_size() -> int:
    """MiB of operand copies; -1: by the size of the caches."""
    return int(_core.tune_get("ROTATING_BUFFER_SIZE"))


def set_numerical_check_tolerances(enable: bool, atol: float = 1e-5, rtol: float = 1e-5) -> None:
    """Compare candidates with Default by these tolerances (``NUMERICAL_CHECK``).

    They are compared anyway, by tolerances that go with the operator, unless this is on.
    """
    _core.tune_set("NUMERICAL_CHECK", f"{atol}_{rtol}" if enable else "off")


def set_filename(filename: str | os.PathLike[str], insert_device_ordinal: bool = False) -> None:
    """Name the file of results (``FILENAME``); "" keeps results in memory.

    Parameters
    ----------
    filename : str or os.PathLike
        ``%d`` in it becomes the number of the tuning worker, torchrun's ``LOCAL_RANK``, or the NUMA
        node.
    insert_device_ordinal : bool
        Puts that number before the last dot of names without ``%d``, that of untuned operators too.
    """
    _core.tune_set("FILENAME", os.fspath(filename))
    _core.tune_insert_ordinal(insert_device_ordinal)


def get_filename() -> str:
    """Name of the file of results, its ordinal filled in."""
    return _core.tune_get("FILENAME")


def get_results() -> tuple[tuple[str, str, str, float], ...]:
    """Give what is known: operator, params, solution, its mean time in ms (-1: not known)."""
    return _core.tune_results()


def get_validators() -> tuple[tuple[str, str], ...]:
    """Give what has to be as it was for the results of a file to be used: keys and values."""
    return _core.tune_validators()


def read_file(filename: str | os.PathLike[str] | None = None) -> bool:
    """Add the results of a file to those in memory, which win.

    Parameters
    ----------
    filename : str or os.PathLike, optional
        The file of `get_filename` is read by itself at its first use.

    Returns
    -------
    bool
        Whether there is such a file and its validators are those of this process.

    Raises
    ------
    RuntimeError
        If it cannot be read.
    """
    return _core.tune_read(filename)


def write_file(filename: str | os.PathLike[str] | None = None) -> None:
    """Append all results to a file, less those that it has.

    Needed for files other than `get_filename` only: to that, each result is appended at once.

    Raises
    ------
    RuntimeError
        If it cannot be written.
    """
    _core.tune_write(filename)


# ------------------------------------------------------------------ other libraries


def set_providers(names: Iterable[str]) -> None:
    """Take matrix products of other libraries as candidates (``PROVIDERS``); none at first.

    They are loaded when the tuner is next asked anything, from the folders of
    ``TOROID_BACKEND_PATH``. What cannot be had is left out, with a warning.

    Parameters
    ----------
    names : iterable of str
        `provider_folder` has "cblas", which is any CBLAS that ``TOROID_CBLAS`` names, and
        "onednn", which is the oneDNN that ``TOROID_ONEDNN`` names.

    Raises
    ------
    ValueError
        For what is no name.
    """
    _core.tune_set("PROVIDERS", ",".join(names))


def get_providers() -> tuple[str, ...]:
    """Names of the providers that are asked for; `get_validators` has those that are there."""
    return tuple(filter(None, _core.tune_get("PROVIDERS").split(",")))


def provider_folder() -> str:
    """Give the folder of the providers that come with the package, for ``TOROID_BACKEND_PATH``."""
    plugin = importlib.resources.files("toroid").joinpath("providers", "toroid_provider_cblas.so")
    return os.path.dirname(os.fspath(plugin))


# ------------------------------------------------------------------ recorded operators


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What became of a list of recorded operators.

    Attributes
    ----------
    listed : int
        Different operators in the files.
    known : int
        That had a result before, or got one from another process; under torchrun, of this
        process's share.
    tuned : int
        That have one now.
    failed : tuple of (str, str, str)
        Operator, params and the reason of those that could not be tuned.
    """

    listed: int
    known: int
    tuned: int
    failed: tuple[tuple[str, str, str], ...]


def _tune(paths: tuple[str, ...], workers: int, report: Report | None) -> Tuned:
    failed = []

    def hear(op: str, params: str, solution: str, *rest: float | str) -> None:
        reason = rest[2]
        if reason:
            failed.append((op, params, reason))
        if report:
            report(op, params, solution, *rest)

    listed, known, tuned, _ = _core.tune_files(paths, workers, hear)
    return Tuned(listed, known, tuned, tuple(failed))


def tune_operators_in_file(
    filename: str | os.PathLike[str], *, workers: int = 0, report: Report | None = None
) -> Tuned:
    """Tune the operators of a list that a run with `record_untuned_enable` wrote.

    Each result is in the file of `get_filename` as soon as it is known, so that an interrupt loses
    nothing. Operators that have a result are passed over. Under torchrun each process takes its
    share.

    Parameters
    ----------
    filename : str or os.PathLike
        The list.
    workers : int
        Processes to tune in, each with cores of its own; 0 tunes in this process.
    report : callable, optional
        See `Report`. What it raises ends the tuning and is raised here.

    Raises
    ------
    ValueError
        For a line that is no operator, for more workers than cores, and where tuning is off.
    RuntimeError
        If the list cannot be read.
    """
    return _tune((os.fspath(filename),), workers, report)


def tune_operators_in_files(
    filename_pattern: str, *, workers: int = 0, report: Report | None = None
) -> Tuned:
    """Tune the operators of several lists, each operator once.

    Parameters
    ----------
    filename_pattern : str
        As for `glob.glob`: ``"untuned*.csv"``.
    workers, report
        As for `tune_operators_in_file`.

    Raises
    ------
    FileNotFoundError
        If no file has such a name.
    ValueError, RuntimeError
        As `tune_operators_in_file` does.
    """
    paths = tuple(sorted(glob.glob(filename_pattern)))
    if not paths:
        raise FileNotFoundError(f"no file has a name like {filename_pattern}")
    return _tune(paths, workers, report)


def tune_gemm_in_file(filename: str | os.PathLike[str]) -> None:
    """Tune a list: PyTorch's name of `tune_operators_in_file`."""
    tune_operators_in_file(filename)


def mgpu_tune_gemm_in_file(filename_pattern: str, num_gpus: int) -> None:
    """Tune lists in `num_gpus` workers: PyTorch's name of `tune_operators_in_files`."""
    tune_operators_in_files(filename_pattern, workers=num_gpus)
