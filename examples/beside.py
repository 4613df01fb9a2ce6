"""Eager beside Toroid: what the other examples time and compare with."""

import sys
import time


def compare(what, eager, compiled, tolerance=0.0, rounds=3):
    """Call both in turns; print the first and the best times, and the largest difference.

    Parameters
    ----------
    what : str
        Names the line.
    eager, compiled : callable
        Without arguments; each returns a tensor.
    tolerance : float
        That answers may differ by; tokens and other integers by nothing.

    Returns
    -------
    Tensor
        What `compiled` gave last.

    Raises
    ------
    SystemExit
        Where the answers differ.
    """
    calls = {"eager": eager, "toroid": compiled}
    first, best, answers = {}, {}, {}
    for _ in range(1 + rounds):  # the first compiles
        for name, call in calls.items():
            begin = time.perf_counter()
            answers[name] = call()
            spent = time.perf_counter() - begin
            if name in first:
                best[name] = min(spent, best.get(name, spent))
            else:
                first[name] = spent
    want, got = answers.values()
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        sys.exit(f"{what}: {got.dtype}{[*got.shape]} is not {want.dtype}{[*want.shape]}")
    difference = (got.double() - want.double()).abs().max().item()
    times = ", ".join(f"{name} {best[name] * 1e3:.1f} ms" for name in calls)
    print(
        f"{what}: {times} ({best['toroid'] / best['eager']:.2f} of eager's; the first took "
        f"{first['toroid']:.1f} s); largest difference {difference:.1e}"
    )
    if not difference <= tolerance:
        sys.exit(f"{what}: answers differ by {difference}, more than {tolerance}")
    return got
