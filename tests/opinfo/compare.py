"""Whether two results are the same: values, dtype, shape and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.testing._comparison import default_tolerances
from torch.testing._internal.common_device_type import toleranceOverride


class Different(Exception):
    """The results differ; the message says in what."""


def tolerances(op: Any) -> dict[torch.dtype, tuple[float, float]]:
    """What the OpInfo allows on the CPU beyond the dtype's tolerances: dtype to (rtol, atol)."""
    found: dict[torch.dtype, tuple[float, float]] = {}
    for info in op.decorators:
        if getattr(info, "device_type", None) not in (None, "cpu"):
            continue
        for decorator in getattr(info, "decorators", [info]):
            if isinstance(decorator, toleranceOverride):
                for dtype, tol in decorator.d.items():
                    old = found.get(dtype, (0.0, 0.0))
                    found[dtype] = (max(old[0], tol.rtol), max(old[1], tol.atol))
    return found


def limits(dtype: torch.dtype, allowed: dict[torch.dtype, tuple[float, float]]) -> dict[str, float]:
    """Keyword arguments rtol and atol of ``assert_close`` for one result."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return {"rtol": 0.0, "atol": 0.0}
    rtol, atol = default_tolerances(dtype)
    more = allowed.get(dtype, (0.0, 0.0))
    return {"rtol": max(rtol, more[0]), "atol": max(atol, more[1])}


def same_strides(got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether two tensors of one shape lie alike; dims of size 1 do not count."""
    if want.layout is not torch.strided or got.layout is not torch.strided or want.numel() == 0:
        return got.layout is want.layout
    pairs = zip(want.shape, got.stride(), want.stride(), strict=True)
    return all(size == 1 or a == b for size, a, b in pairs)


def check(
    got: Sequence[torch.Tensor | None],
    want: Sequence[torch.Tensor | None],
    allowed: dict[torch.dtype, tuple[float, float]],
    *,
    strides: bool = True,
    values: bool = True,
) -> None:
    """Compare results one by one.

    Raises
    ------
    Different
        At the first difference.
    """
    if len(got) != len(want):
        raise Different(f"{len(got)} results, eager gives {len(want)}")
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if a is None or b is None:
            if a is not b:
                raise Different(f"result {i}: {'no' if a is None else 'a'} tensor, unlike eager")
            continue
        if a.dtype != b.dtype or a.shape != b.shape:
            raise Different(f"result {i}: {a.dtype}{list(a.shape)}, eager {b.dtype}{list(b.shape)}")
        if values:
            try:
                torch.testing.assert_close(a, b, **limits(b.dtype, allowed), equal_nan=True)
            except AssertionError as error:
                raise Different(f"result {i}: {' '.join(str(error).split())}") from error
        if strides and not same_strides(a, b):
            raise Different(f"result {i}: strides {a.stride()}, eager {b.stride()}")


#: Ops that pick elements: of equal ones PyTorch promises none in particular.
PICKS = {"argsort", "kthvalue", "median", "mode", "msort", "nanmedian", "sort", "topk"}


def picks_equals(x: torch.Tensor, index: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether `index` points along some dim of `x` at elements that equal those at `want`.

    No element may be picked twice.
    """
    for dim in range(x.dim()):
        for i, w in ((index, want), (index.unsqueeze(dim), want.unsqueeze(dim))):
            rest = [s for d, s in enumerate(x.shape) if d != dim]
            if i.dim() != x.dim() or [s for d, s in enumerate(i.shape) if d != dim] != rest:
                continue
            once = bool((i.sort(dim).values.diff(dim=dim) > 0).all())
            if once and torch.equal(x.gather(dim, i).nan_to_num(), x.gather(dim, w).nan_to_num()):
                return True
    return False


def gives_equals_the_same(x: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether along some dim of `x` equal elements get the same gradient, all of them together."""
    for dim in range(x.dim()):
        ordered, order = x.nan_to_num().sort(dim=dim, stable=True)
        more = torch.ones_like(ordered.narrow(dim, 0, 1), dtype=torch.bool)
        last = torch.cat([ordered.diff(dim=dim) != 0, more], dim)
        a, b = (g.double().gather(dim, order).cumsum(dim)[last] for g in (got, want))
        if torch.allclose(a, b):
            return True
    return False


def is_close(a: torch.Tensor, b: torch.Tensor, limit: dict[str, float]) -> bool:
    """Whether two results agree within tolerances."""
    try:
        torch.testing.assert_close(a, b, **limit, equal_nan=True)
    except AssertionError:
        return False
    return True


def distance(x: torch.Tensor, y: torch.Tensor) -> float:
    """The greatest difference that is a finite number."""
    return (x.double() - y.double()).abs().nan_to_num(0, 0, 0).max().item()


def is_sound(
    got: Sequence[torch.Tensor | None],
    want: Sequence[torch.Tensor | None],
    exact: Sequence[torch.Tensor | None],
    nudged: Sequence[Sequence[torch.Tensor | None]],
    allowed: dict[torch.dtype, tuple[float, float]],
) -> bool:
    """Whether each result is eager's or as near as eager's to that computed in float64.

    As near: within the tolerances, or within four times eager's greatest distance. That has a limit
    too: the tolerance of the greatest value, or what the exact result moves by when the inputs are
    nudged by half a unit in their last place (`nudged`: exact results of such inputs). Sums that
    cancel and exponentials of large numbers need it: their last bits depend on the order.
    """
    for i, (a, b, e) in enumerate(zip(got, want, exact, strict=True)):
        if a is None or b is None or e is None:
            continue
        limit = limits(a.dtype, allowed)
        if is_close(a, b, limit):
            continue
        if a.dtype.is_floating_point and e.dtype == torch.float64 and e.numel() > 0:
            scale = distance(e, torch.zeros(()))
            moved = max((distance(n[i], e) for n in nudged), default=0.0)
            most = max(limit["rtol"] * scale, moved)
            limit["atol"] = max(limit["atol"], min(4 * distance(b, e), most))
            e = e.to(a.dtype)
        if not is_close(a, e, limit):
            return False
    return True
