"""What Toroid found on this machine: `toroid.info`."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os

from toroid import __version__, _core


@dataclasses.dataclass
class Info:
    """What decides which kernels run, and on how many threads.

    Attributes
    ----------
    version : str
        Toroid's.
    torch : str
        PyTorch's version.
    cpu : str
        Model of the CPU.
    features : str
        Instruction sets in use.
    mask : str
        What TOROID_CPU_MASK takes away from them.
    caches : tuple of int
        Bytes of the first, second and third level.
    cpus : int
        That this process may use, by its affinity and its control group's quota.
    torch_threads : int
        ``torch.get_num_threads()``.
    threads : int
        Of a call whose options name no number.
    """

    version: str
    torch: str
    cpu: str
    features: str
    mask: str
    caches: tuple[int, int, int]
    cpus: int
    torch_threads: int
    threads: int

    def __str__(self) -> str:
        l1, l2, l3 = (f"{size >> 10} KiB" for size in self.caches)
        masked = f" (TOROID_CPU_MASK={self.mask})" if self.mask else ""
        return "\n".join(
            (
                f"toroid {self.version}, torch {self.torch}",
                f"{self.cpu}: {self.features or 'no vector extension in use'}{masked}",
                f"caches: {l1} L1, {l2} L2 a core, {l3} L3",
                f"threads: {self.threads} (PyTorch has {self.torch_threads}, this process may use "
                f"{self.cpus} of the CPUs)",
            )
        )


def info() -> Info:
    """Look at the machine; see `Info`."""
    import torch

    from toroid._torch import attach

    attach()
    machine = _core.machine()
    return Info(
        version=__version__,
        torch=importlib.metadata.version("torch"),
        cpu=machine["cpu"],
        features=machine["features"],
        mask=os.environ.get("TOROID_CPU_MASK", ""),
        caches=(machine["l1d"], machine["l2"], machine["l3"]),
        cpus=machine["cpus"],
        torch_threads=torch.get_num_threads(),
        threads=_core.threads(),
    )
