"""Random programs. Each call runs in eager as it is added, so that what eager refuses is left out.

A program depends on its seed and index alone.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from fuzz.program import ITEM, Call, Input, Program, Ref

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
DTYPES = FLOATS + INTS + (torch.bool,)
WEIGHTS = (10, 3, 3, 3, 3, 2, 2, 2, 2, 3)
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33)
LIMIT = 8192  # elements of a value
MAX_INPUTS = 12


class NoGood(Exception):
    """This choice does not fit; try another."""


class Generator:
    """Makes one program; `rng` chooses, `torch_rng` fills inputs."""

    def __init__(self, seed: int, index: int) -> None:
        self.rng = random.Random(f"{seed}:{index}")
        self.torch_rng = torch.Generator().manual_seed(self.rng.getrandbits(48))
        self.values: list[Input | Call] = []
        self.env: list[Any] = []
        self.base = self.shape()
        self.favourite = self.rng.choices(DTYPES, WEIGHTS)[0]
        self.wild = self.rng.random() < 0.1  # with NaN, infinities, signed zeros, subnormals
        self.full_range = self.rng.random() < 0.15  # integers over the whole of their type

    # -------------------------------------------------------------- values

    def chance(self, p: float) -> bool:
        """True with probability p."""
        return self.rng.random() < p

    def size(self) -> int:
        """A size of a dim."""
        return 0 if self.chance(0.02) else self.rng.choice(SIZES)

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        """A shape of at most LIMIT elements."""
        if rank is None:
            rank = self.rng.choices((0, 1, 2, 3, 4, 5), (1, 4, 8, 6, 4, 1))[0]
        sizes = [self.size() for _ in range(rank)]
        while torch.Size(sizes).numel() > LIMIT:
            sizes[self.rng.randrange(rank)] = self.rng.choice((1, 2, 3))
        return tuple(sizes)

    def dtype(self) -> torch.dtype:
        """A dtype, often the program's favourite."""
        return self.favourite if self.chance(0.5) else self.rng.choices(DTYPES, WEIGHTS)[0]

    def add(self, value: Input | Call, result: Any) -> Ref:
        """Append a value."""
        self.values.append(value)
        self.env.append(result)
        return Ref(len(self.values) - 1)

    def fill(self, n: int, dtype: torch.dtype) -> torch.Tensor:
        """A storage of n elements."""
        if dtype is torch.bool:
            return torch.randint(0, 2, (n,), generator=self.torch_rng).bool()
        if not dtype.is_floating_point:
            info = torch.iinfo(dtype)
            low, high = max(info.min, -5), 6
            if self.full_range:
                low, high = info.min, min(info.max, 2**63 - 2) + 1
            return torch.randint(low, high, (n,), generator=self.torch_rng).to(dtype)
        scale = self.rng.choice((1.0, 1.0, 1.0, 0.1, 10.0))
        t = torch.randn(n, generator=self.torch_rng, dtype=torch.float64) * scale
        if self.chance(0.2):
            t = t.round()
        if self.wild and n:
            special = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 2**-126, 7e4, -1e15)
            for _ in range(min(n, 4)):
                t[self.rng.randrange(n)] = self.rng.choice(special)
        return t.to(dtype)

    def new_input(
        self, shape: tuple[int, ...], dtype: torch.dtype, data: torch.Tensor | None = None
    ) -> Ref:
        """An argument: a dense tensor, or one that is permuted, stepped, expanded or offset."""
        if sum(isinstance(v, Input) for v in self.values) >= MAX_INPUTS:
            raise NoGood
        rank = len(shape)
        order = list(range(rank))
        steps = [1] * rank
        offset = 0
        expanded = set()
        if self.chance(0.5):
            kind = self.rng.randrange(5)
            if kind in (0, 4):
                self.rng.shuffle(order)
            if kind in (1, 4):
                steps = [self.rng.choice((1, 1, 2, 3)) for _ in range(rank)]
            if kind in (2, 4):
                offset = self.rng.randrange(1, 9)
            if kind == 3 and data is None:
                expanded = {d for d in range(rank) if self.chance(0.4)}
        strides = [0] * rank
        extent = 1
        for d in reversed(order):
            if d in expanded:
                continue
            strides[d] = extent * steps[d]
            extent *= max(shape[d], 1) * steps[d]
        storage = self.fill(extent + offset, dtype)
        value = Input(storage, tuple(shape), tuple(strides), offset)
        if data is not None:
            storage.as_strided(shape, strides, offset).copy_(data)
        value.frozen = self.chance(0.25)
        return self.add(value, value.tensor())

    def pick(self, want: Any = None, new: float = 0.15) -> Ref:
        """A tensor of the program that `want` accepts; sometimes, or failing that, a new input."""
        if not self.chance(new):
            fits = [
                i
                for i, t in enumerate(self.env)
                if isinstance(t, torch.Tensor) and (want is None or want(t))
            ]
            if fits:
                recent = fits[-6:]
                return Ref(self.rng.choice(recent if self.chance(0.7) else fits))
        for _ in range(8):
            shape = self.base if self.chance(0.6) else self.shape()
            dtype = self.dtype()
            if want is None or want(torch.empty(shape, dtype=dtype, device="meta")):
                return self.new_input(shape, dtype)
        raise NoGood

    def tensor(self, ref: Ref) -> torch.Tensor:
        """What eager has for a reference."""
        return self.env[ref.at]

    def like(self, ref: Ref, dtype: torch.dtype | None = None) -> Ref:
        """Another operand that broadcasts with `ref`."""
        t = self.tensor(ref)

        def fits(o: torch.Tensor) -> bool:
            if dtype is not None and o.dtype != dtype:
                return False
            pairs = zip(reversed(o.shape), reversed(t.shape), strict=False)
            return all(a == b or 1 in (a, b) for a, b in pairs)

        if self.chance(0.7):
            try:
                return self.pick(fits, new=0.0)
            except NoGood:
                pass
        shape = [1 if self.chance(0.2) else s for s in t.shape]
        shape = shape[self.rng.randrange(len(shape) + 1) :] if self.chance(0.3) else shape
        return self.new_input(tuple(shape), dtype or self.dtype())

    def same(self, shape: Any, dtype: torch.dtype) -> Ref:
        """An operand of exactly this shape and dtype."""
        shape = tuple(shape)
        return (
            self.pick(lambda t: tuple(t.shape) == shape and t.dtype == dtype, new=0.0)
            if self.chance(0.5) and any(self.is_like(t, shape, dtype) for t in self.env)
            else self.new_input(shape, dtype)
        )

    @staticmethod
    def is_like(t: Any, shape: tuple[int, ...], dtype: torch.dtype) -> bool:
        """Whether a value is a tensor of this shape and dtype."""
        return isinstance(t, torch.Tensor) and tuple(t.shape) == shape and t.dtype == dtype

    def scalar(self, integer: bool = False) -> Any:
        """A Python number."""
        kind = self.rng.randrange(10)
        if integer or kind < 4:
            return self.rng.choice((0, 1, 2, 3, -1, -2, 5, 7, -7, 100))
        if kind == 4 and not integer:
            return self.rng.choice((True, False))
        return self.rng.choice((0.5, 1.5, -0.25, 2.0, -3.0, 0.1, 1e-3, 10.0))

    def dim(self, ref: Ref) -> int:
        """A dim, sometimes counted from the end."""
        rank = self.tensor(ref).dim()
        if rank == 0:
            raise NoGood
        d = self.rng.randrange(rank)
        return d - rank if self.chance(0.3) else d

    def dims(self, ref: Ref, least: int = 1) -> list[int]:
        """Some dims, each once."""
        rank = self.tensor(ref).dim()
        if rank < least:
            raise NoGood
        return sorted(self.rng.sample(range(rank), self.rng.randint(least, rank)))

    def index(self, shape: Any, size: int, negative: bool = False) -> Ref:
        """An index tensor with values below `size`."""
        if size == 0:
            raise NoGood
        low = -size if negative else 0
        data = torch.randint(low, size, tuple(shape), generator=self.torch_rng)
        return self.new_input(tuple(shape), torch.int64, data)

    # -------------------------------------------------------------- calls

    def call(self, target: Any, *args: Any, **kwargs: Any) -> Ref:
        """Run a call in eager and append it.

        Raises
        ------
        NoGood
            If eager refuses it, or the result is too large or has lost all meaning.
        """
        from fuzz.program import substitute

        concrete = substitute(args, lambda r: self.env[r.at])
        named = substitute(kwargs, lambda r: self.env[r.at])
        try:
            result = target(*concrete, **named)
        except Exception as error:
            raise NoGood from error
        for t in result if isinstance(result, tuple | list) else (result,):
            if not isinstance(t, torch.Tensor):
                continue
            if t.numel() > LIMIT or t.dim() > 6 or t.dtype not in DTYPES:
                raise NoGood
            if t.is_floating_point() and t.numel() and not self.wild:
                bad = (~t.isfinite()).sum().item()
                if bad > t.numel() // 4:
                    raise NoGood
        return self.add(Call(target, args, kwargs), result)

    def items(self, ref: Ref) -> None:
        """Take some of the results of a call that has several."""
        results = self.env[ref.at]
        chosen = [k for k in range(len(results)) if self.chance(0.7)] or [0]
        for k in chosen[:6]:
            if isinstance(results[k], torch.Tensor) and results[k].dtype in DTYPES:
                self.add(Call(ITEM, (ref, k)), results[k])

    # -------------------------------------------------------------- the whole

    def program(self) -> Program:
        """Generate."""
        from fuzz.ops import ROWS, TOTALS

        self.new_input(self.base, self.favourite)
        wanted = self.rng.randint(5, 40)
        calls = tries = 0
        while calls < wanted and tries < 6 * wanted:
            tries += 1
            row = self.rng.choices(ROWS, cum_weights=TOTALS)[0]
            kept = len(self.values)
            try:
                row.make(self)
                calls += 1
            except NoGood:
                del self.values[kept:], self.env[kept:]
        program = Program(self.values)
        self.choose_outputs(program)
        program.threads = 2 if self.chance(0.1) else 1
        return program.without_dead()

    def choose_outputs(self, program: Program) -> None:
        """Outputs: most values that nothing reads, and some that others read; then writes."""
        from fuzz.program import refs

        read: set[int] = set()
        for v in self.values:
            if isinstance(v, Call):
                read |= refs(v)
        tensors = [
            i
            for i, v in enumerate(self.values)
            if isinstance(v, Call) and isinstance(self.env[i], torch.Tensor)
        ]
        leaves = [i for i in tensors if i not in read]
        inner = [i for i in tensors if i in read]
        outputs = leaves[-5:] + [i for i in inner if self.chance(0.08)]
        if self.chance(0.05):
            outputs.append(self.rng.choice(program.inputs()))
        self.rng.shuffle(outputs)
        program.outputs = outputs[:8]
        if self.chance(0.3):
            self.choose_writes(program, tensors)

    def choose_writes(self, program: Program, tensors: list[int]) -> None:
        """Writes to inputs that no output looks into, as AOTAutograd makes them."""

        def memory(i: int) -> int:
            return self.env[i].untyped_storage().data_ptr()

        shown = {memory(i) for i in program.outputs}
        for i in program.inputs():
            value = self.values[i]
            overlapping = any(
                st == 0 and si > 1 for st, si in zip(value.stride, value.size, strict=True)
            )
            if overlapping or memory(i) in shown or not self.chance(0.5):
                continue
            fits = [
                k
                for k in tensors
                if self.env[k].shape == self.env[i].shape
                and self.env[k].dtype == self.env[i].dtype
                and memory(k) != memory(i)
                and self.values[k].target is not ITEM
            ]
            if fits:
                value.frozen = False
                source = self.rng.choice(fits)
                # A value that views another written input would see that write.
                if memory(source) not in {memory(p) for p, _ in program.writes}:
                    program.writes.append((i, source))
        written = {memory(p) for p, _ in program.writes}
        program.writes = [(p, s) for p, s in program.writes if memory(s) not in written]


def generate(seed: int, index: int) -> Program:
    """Program `index` of a seed."""
    return Generator(seed, index).program()
