"""The HTTP service of examples/: answers of threads that share a model, and refusals."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

from service_load import Server  # noqa: E402


def test_load_beside_eager():
    """The script itself checks every answer against eager's."""
    command = [sys.executable, EXAMPLES / "service_load.py", "--seconds", "3", "--clients", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    rows = [line.split() for line in done.stdout.splitlines()[-2:]]
    assert [row[0] for row in rows] == ["eager", "toroid"]
    assert all(float(row[1]) > 0 and row[-1] == "0" for row in rows)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"texts": "one"}', b'{"texts": []}', b'{"texts": [1]}',
     b'{"texts": ["a"' + b', "a"' * 40 + b"]}"],
)  # fmt: skip
def test_wrong_requests(service, body):
    async def post():
        async with aiohttp.ClientSession() as session, session.post(service, data=body) as response:
            return response.status, await response.text()

    status, text = asyncio.run(post())
    assert status == 400 and text.startswith("expected")


@pytest.fixture(scope="module")
def service():
    """Run the service in eager mode, which starts at once."""
    server = Server("eager", 1)
    asyncio.run(server.__aenter__())
    yield f"http://127.0.0.1:{server.port}/embed"
    asyncio.run(server.__aexit__())
