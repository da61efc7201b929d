"""The command that translates, by an engine or through batch files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beirnl.cli.app import Exp, app, load_translation, progress_of_terminal
from beirnl.errors import ConfigError
from beirnl.wording import counted

if TYPE_CHECKING:
    from beirnl.graph import Node
    from beirnl.pipeline import Pipeline


@app.command()
def translate(
    experiment: Exp,
    write_batch: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Ask nothing: write what is to be asked into batch files."),
    ] = None,
    read_batch: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take the results of batch files, and go on.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="auto|HOST:PORT", help="Run on this Ray cluster instead of this machine."),
    ] = None,
) -> None:
    """Translate, repair and compare with references where there are any, and nothing else of the experiment.

    With `--write-batch DIR` the requests are written as files in OpenAI's batch format, for a provider's
    batch API or vLLM's `run_batch` (`engine = "batch"`). Put the results into a folder and give it to
    `--read-batch`; it says what is still to be asked, such as the repairs: write again until nothing is left.
    """
    from beirnl.api import run_nodes
    from beirnl.pipeline import Pipeline

    with progress_of_terminal() as progress:
        pipeline = Pipeline.of(load_translation(experiment), progress)
        if write_batch is None and read_batch is None:
            run_nodes(pipeline, address, _wanted(pipeline))
            return
        _refuse_local(pipeline, experiment)
        if read_batch:
            _take(pipeline, read_batch)
        _through_files(pipeline, write_batch, experiment)


def _wanted(pipeline: "Pipeline") -> "list[Node]":
    """All translations, with their comparisons with a reference."""
    compared = [one.quality for one in pipeline.graph.translations if one.quality]
    return pipeline.needed([*pipeline.translations(), *compared])


def _refuse_local(pipeline: "Pipeline", experiment: Path) -> None:
    """Batch files name a model as a provider does, which only engines on a network have."""
    from beirnl.llm import ENGINES
    from beirnl.stages.translate import llm_of

    for translation in pipeline.graph.translations:
        engine = llm_of(translation.answers.spec).engine
        if not ENGINES[engine].remote:
            raise ConfigError(
                f"engine {engine!r} runs its model here, and batch files are for a provider",
                where=experiment,
                remedy='set engine = "batch" and the model\'s name under [translation]',
            )


def _take(pipeline: "Pipeline", results: Path) -> None:
    from beirnl.executors.deferred import read_batch
    from beirnl.stages.translate import journal_folder

    folders = {journal_folder(pipeline.workspace, llm) for llm in pipeline.graph.asked()}
    taken = read_batch(results, folders)
    reasons = "".join(f"; {number} without an answer: {reason}" for reason, number in taken.failed.items())
    passed = f"; {taken.foreign} passed over that --write-batch has not asked here" if taken.foreign else ""
    print(f"{counted(taken.answers, 'new answer', 'new answers')}{reasons}{passed}")


def _through_files(pipeline: "Pipeline", folder: Path | None, experiment: Path) -> None:
    """Commit what has its answers, and write or count what has not."""
    import tempfile

    from beirnl.executors.deferred import DeferredExecutor

    with tempfile.TemporaryDirectory() as nowhere, DeferredExecutor(folder or Path(nowhere)) as executor:
        pipeline.run(executor, nodes=_wanted(pipeline))
    if not executor.requests:
        print(f"every answer is there; go on with `beirnl run {experiment}`")
    elif folder:
        print(f"{counted(executor.requests, 'request')} in {counted(len(executor.files), 'file')}: {folder}")
        print(f"when they are answered: beirnl translate {experiment} --read-batch RESULTS")
    else:
        print(
            f"{counted(executor.requests, 'request is', 'requests are')} to be asked: "
            f"beirnl translate {experiment} --write-batch DIR"
        )
