"""Question answering by several workers ends with what one process gives."""

from rag_experiments import BM25, MOCK, rag, replies, write_documents
from running import beirnl, experiment, run

from beirnl.config import load_experiment
from beirnl.pipeline import Pipeline


def test_two_workers_give_what_one_process_gives(tmp_path):
    documents = write_documents(tmp_path / "documents")
    text = rag(documents, f'{MOCK}\n{MOCK}\nname = "open"\nopen = true', permutations=2) + BM25
    for name in ("alone", "together"):
        (tmp_path / name).mkdir()
    alone = run(experiment(tmp_path / "alone", text))
    path = experiment(tmp_path / "together", text)
    beirnl("rag", "run", path, "--workers", "2")
    together = Pipeline.of(load_experiment(path))
    for llm in ("mock", "open"):
        assert replies(together, llm) == replies(alone, llm)
        assert any(reply["answer"] >= 0 for reply in replies(alone, llm))
