"""Load on the embedding service: requests a second and latencies, eager and Toroid in turn.

    python examples/service_load.py [--seconds 60] [--clients 16] [--workers 2]

Every answer is compared with one that was computed alone. Prints a table; fails where a request
failed, an answer is wrong, or the server's memory grew.
"""

import argparse
import asyncio
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import torch
import toroid
from service import Embedder

TEXT = "the night train waits for a tired baker who paints an empty concert hall"
KINDS = 64  # different requests
TOLERANCE = 1e-5  # between unit vectors


def requests():
    """Requests of 1 to 4 texts of 3 to 60 words."""
    draw, words = random.Random(0), TEXT.split()
    return [
        [" ".join(draw.choices(words, k=draw.randint(3, 60))) for _ in range(draw.randint(1, 4))]
        for _ in range(KINDS)
    ]


def resident(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


class Server:
    """The service in a process of its own, ready when entered."""

    def __init__(self, backend, workers):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        script = Path(__file__).with_name("service.py")
        self.command = [sys.executable, str(script), "--backend", backend]
        self.command += ["--port", str(self.port), "--workers", str(workers)]

    async def __aenter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        async with aiohttp.ClientSession() as session:
            while True:
                if self.process.poll() is not None:
                    raise RuntimeError(f"the server ended with {self.process.returncode}")
                try:
                    async with session.get(f"http://127.0.0.1:{self.port}/health"):
                        return self
                except aiohttp.ClientError:
                    await asyncio.sleep(0.1)

    async def __aexit__(self, *error):
        self.process.terminate()
        self.process.wait()


async def client(session, url, work, expected, seed, end, latencies, errors):
    draw = random.Random(seed)
    while time.perf_counter() < end:
        i = draw.randrange(KINDS)
        begin = time.perf_counter()
        try:
            async with session.post(url, json={"texts": work[i]}) as response:
                body = await response.json()
        except (aiohttp.ClientError, ValueError) as error:
            errors.append(repr(error))
            continue
        latencies.append(time.perf_counter() - begin)
        answer = torch.tensor(body["embeddings"])
        difference = (answer - expected[i]).abs().max().item()
        if answer.shape != expected[i].shape or not difference < TOLERANCE:
            errors.append(f"request {i}: off by {difference}")


async def load(backend, args, work, expected):
    """Return what one server did under load."""
    latencies, errors = [], []
    async with Server(backend, args.workers) as server, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{server.port}/embed"

        def run(seconds, times):
            end = time.perf_counter() + seconds
            return asyncio.gather(
                *(
                    client(session, url, work, expected, seed, end, times, errors)
                    for seed in range(args.clients)
                )
            )

        await run(args.seconds / 4, [])
        before = resident(server.process.pid)
        begin = time.perf_counter()
        await run(args.seconds, latencies)
        spent = time.perf_counter() - begin
        grown = resident(server.process.pid) / before - 1
    latencies.sort()
    return {
        "backend": backend,
        "requests": len(latencies) / spent,
        "p50": latencies[len(latencies) // 2] * 1e3,
        "p99": latencies[len(latencies) * 99 // 100] * 1e3,
        "grown": grown,
        "errors": errors,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--workers", type=int, default=toroid.info().cpus)
    args = parser.parse_args()
    work = requests()
    alone = Embedder("eager")
    expected = [alone(texts) for texts in work]
    rows = [asyncio.run(load(name, args, work, expected)) for name in ("eager", "toroid")]
    print(f"{args.clients} clients, {args.workers} workers, {args.seconds:g} s each")
    print("backend   requests/s   p50 ms   p99 ms   memory   errors")
    for row in rows:
        print(
            f"{row['backend']:8} {row['requests']:11.1f} {row['p50']:8.1f} {row['p99']:8.1f} "
            f"{row['grown']:+8.1%} {len(row['errors']):8}"
        )
        for error in row["errors"][:3]:
            print(f"  {error}")
    # A short run is still filling caches.
    grew = args.seconds >= 30 and any(row["grown"] > 0.05 for row in rows)
    sys.exit(1 if grew or any(row["errors"] for row in rows) else 0)


if __name__ == "__main__":
    main()
