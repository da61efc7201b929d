"""The command line. Commands only join what other modules do; anything heavy is imported by the command that
needs it, so that ``--help`` and ``plan`` answer at once."""

import os
import signal
import sys
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from beirnl import __version__

# Commands join the application when their modules are imported.
from beirnl.cli import (  # noqa: F401
    audit,
    datasets,
    evaluate,
    models,
    publish,
    quality,
    rag,
    run,
    serve,
    show,
    status,
    translate,
)
from beirnl.cli.app import app
from beirnl.errors import BeirnlError
from beirnl.store.files import disk_error

__all__ = ["app", "main"]

_INTERRUPTED = 130  # as a shell counts a process that SIGINT ended


def main(argv: list[str] | None = None) -> None:
    """Entry point: errors are one line on standard error and exit code 2; ``--debug`` shows the traceback."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    _speak_utf8()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends in order, as Ctrl-C does
    try:
        code = app(arguments or ["--help"], prog_name="beirnl", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        _fail(_usage(error))
    except BrokenPipeError:
        _leave(1)
    except BeirnlError as error:
        if debug:
            raise
        _fail(str(error))
    except OSError as error:
        if debug:
            raise
        _fail(str(disk_error(error, error.filename)))
    interrupted = code == _INTERRUPTED
    _leave(code or 0, "interrupted; run the same command again to go on" if interrupted else "")


def _usage(error: typer.TyperException) -> str:
    """A command that cannot be understood, as one line that says where its options are listed."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "beirnl"
    message = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    return f"{message}; see `{command} --help`"


def _speak_utf8() -> None:
    """Read and write UTF-8 whatever the locale; a stream that is closed stands for one without content."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123
        else:
            stream.reconfigure(encoding="utf-8", errors="surrogateescape" if mode == "r" else "replace")


def _fail(message: str) -> NoReturn:
    _leave(2, f"error: {message}")


def _leave(code: int, message: str = "") -> NoReturn:
    """Say why and end the process at once: threads may wait for answers, and those of native libraries can
    abort an interpreter that ends while they do."""
    with suppress(OSError):  # nobody listens any more
        if message:
            print(message, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _version(value: bool) -> None:
    if value:
        print(f"beirnl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    pass
