"""CPU time per document of the path to a server that answers at once, outside the HTTP client.

The path is: render the prompt, look in the journal, send, read the answer, append it to the journal. The
client's own cost is that of aiohttp sending the same bodies and reading the answers; openai's client and
httpx do the same beside it. The server is another process; CPU time is this process's, all threads.

python benchmarks/http_overhead.py [--documents 3000] [--runs 3] [--in-flight 64] [--profile]
"""

import argparse
import asyncio
import cProfile
import itertools
import json
import multiprocessing
import pstats
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from beirnl import registry
from beirnl.llm import Request, Surroundings
from beirnl.llm.asking import Asker
from beirnl.llm.openai_engine import OpenAiLlm
from beirnl.llm.openai_format import endpoint, request_body
from beirnl.specs import LlmSpec, ModelRef, Server
from beirnl.store.journal import Journal
from beirnl.translation.prompts import Template, read_template, render

MODEL = "model"
TEXT = "<title> Een titel </title> <body> " + "een zin met woorden in het Nederlands. " * 40 + "</body>"
ANSWER = {
    "id": "chatcmpl-0",
    "object": "chat.completion",
    "created": 0,
    "model": MODEL,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}],
    "usage": {"prompt_tokens": 400, "completion_tokens": 300, "total_tokens": 700},
}


class InstantServer(asyncio.Protocol):
    """Answers every HTTP request with the same completion, as soon as its body is there."""

    CONTENT = json.dumps(ANSWER).encode()
    RESPONSE = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(CONTENT)
    ) + CONTENT

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            length = int(lengths[0].partition(b":")[2]) if lengths else 0
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            self.transport.write(self.RESPONSE)


def serve(port: multiprocessing.Queue) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(InstantServer, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def documents(path: Path, number: int) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in itertools.islice(file, number)]
    return [(row["title"], row["text"]) for row in rows]


def rendered(texts: Iterable[tuple[str, str]], template: Template, spec: LlmSpec) -> list[Request]:
    def of(title: str, text: str) -> Request:
        return render(
            template,
            title=title,
            text=text,
            domain="scientific",
            source_language="en",
            target_language="nl",
            llm=spec,
        )

    return [of(title, text) for title, text in texts]


def whole_path(texts: list[tuple[str, str]], template: Template, spec: LlmSpec) -> float:
    """CPU seconds of everything."""
    llm = OpenAiLlm(spec, Surroundings())
    with tempfile.TemporaryDirectory() as name:
        begin = time.process_time()
        with Journal(Path(name), 0, 1, "benchmark") as journal:
            Asker(llm, spec, journal, 0).ask(rendered(texts, template, spec))
        spent = time.process_time() - begin
    llm.close()
    return spent


async def many(works: Iterable[Callable[[], Awaitable]], in_flight: int) -> float:
    """CPU seconds of so much work, so many pieces at once."""
    left = iter(works)

    async def worker() -> None:
        for work in left:
            await work()

    begin = time.process_time()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return time.process_time() - begin


async def bare_aiohttp(requests: list[Request], url: str, in_flight: int) -> float:
    import aiohttp

    bodies = [msgspec.json.encode(request_body(request, MODEL)) for request in requests]
    headers = {"Content-Type": "application/json"}

    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def post(body: bytes) -> None:
            async with session.post(url + endpoint(requests[0]), data=body) as response:
                await response.read()

        return await many((lambda body=body: post(body) for body in bodies), in_flight)


async def bare_httpx(requests: list[Request], url: str, in_flight: int) -> float:
    import httpx

    bodies = [request_body(request, MODEL) for request in requests]
    limits = httpx.Limits(max_connections=in_flight)
    async with httpx.AsyncClient(limits=limits) as client:
        works = (lambda b=body: client.post(url + endpoint(requests[0]), json=b) for body in bodies)
        return await many(works, in_flight)


async def bare_openai(requests: list[Request], url: str, in_flight: int) -> float:
    import openai

    bodies = [request_body(request, MODEL) for request in requests]
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="none") as client:
        works = (lambda b=body: client.chat.completions.create(**b) for body in bodies)
        return await many(works, in_flight)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, default=Path("../shared/data/scifact/corpus.jsonl"))
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--profile", action="store_true", help="print where this thread's time goes")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    server = context.Process(target=serve, args=(port,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{port.get()}"
    spec = LlmSpec(
        engine="openai",
        model=ModelRef(name=MODEL, source=f"api:{MODEL}"),
        server=Server(base_url=url + "/v1", api_key_env="", in_flight=arguments.in_flight),
    )
    template = read_template("paper-document", registry.prompt("paper-document"), "document")
    texts = documents(arguments.corpus, arguments.documents)
    requests = rendered(texts, template, spec)
    ways: dict[str, Callable[[], float]] = {
        "whole path": lambda: whole_path(texts, template, spec),
        "aiohttp": lambda: asyncio.run(bare_aiohttp(requests, url, arguments.in_flight)),
        "openai": lambda: asyncio.run(bare_openai(requests, url, arguments.in_flight)),
        "httpx": lambda: asyncio.run(bare_httpx(requests, url, arguments.in_flight)),
    }
    for way in ways.values():  # imports and caches are nobody's cost
        way()
    runs = [{name: way() / len(texts) * 1000 for name, way in ways.items()} for _ in range(arguments.runs)]
    print(f"{len(texts)} documents, {arguments.in_flight} in flight, median of {arguments.runs} runs")
    for name in ways:
        print(f"{name:<12} {statistics.median(run[name] for run in runs):.3f} ms of CPU per document")
    overhead = statistics.median(run["whole path"] - run["aiohttp"] for run in runs)
    print(f"outside the HTTP client: {overhead:.3f} ms (asked: less than 0.5)")
    if arguments.profile:
        profile = cProfile.Profile()
        profile.runcall(ways["whole path"])
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
