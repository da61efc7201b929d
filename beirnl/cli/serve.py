"""The command that serves the systems of an experiment."""

import signal
import socket
import threading
from typing import Annotated

import typer

from beirnl.cli.app import Exp, app, load
from beirnl.errors import ConfigError


@app.command()
def serve(
    experiment: Exp,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where it listens.")] = 8000,
    host: Annotated[
        str,
        typer.Option(help="Another address opens the service, without a password, to whoever reaches it."),
    ] = "127.0.0.1",
    replicas: Annotated[int, typer.Option(min=1, help="Processes that search; they map the same files.")] = 2,
    model_replicas: Annotated[
        int, typer.Option(min=1, help="Most processes of each encoder and reranker.")
    ] = 2,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Requests that a replica works on at once; more get 503.")
    ] = 16,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds until a request gets 504.")] = 30.0,
    address: Annotated[
        str | None,
        typer.Option(help="A Ray cluster: HOST:PORT of its head, or auto (default: this machine)."),
    ] = None,
) -> None:
    """Serve what was run: a page to ask every system, and `/search?q=&dataset=&system=&k=` as JSON.

    `serve run serve.yaml` does the same from a config file of Ray Serve.
    """
    from beirnl.serve.running import served
    from beirnl.serve.settings import Settings

    _check_port(host, port)
    settings = Settings(
        experiment=str(experiment.resolve()),
        replicas=replicas,
        model_replicas=model_replicas,
        concurrency=concurrency,
        timeout=timeout,
    )
    try:
        with served(load(experiment), settings, host, port, address):
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ray has put its own there
            print(f"open http://{_shown(host)}:{port}/ (its API: /docs; Ctrl-C stops)", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        print("stopped")


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _check_port(host: str, port: int) -> None:
    """Refuse a port where nothing can listen, before anything is started.

    Raises:
        ConfigError: it is in use, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}:{port} ({error.strerror or error})",
                remedy="give another --port" if error.errno == 98 else "give another --host or --port",
            ) from error
