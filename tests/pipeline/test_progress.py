"""Every stage whose units may take long says how far they are."""

import every_system
from beir_folder import write_beir
from running import dataset, experiment, run

from beirnl.store.writing import PartWriter

LONG = ("import-corpus", "index", "search-bm25", "index-shards", "search-shards", "embed", "search-exact")
LONG += ("ann-index", "embed-tokens", "search-late", "gather", "rerank")


def test_every_long_stage_tells_its_rows_up_to_the_last(tmp_path, monkeypatch):
    told = {}

    def tell(self, rows):
        told.setdefault(self._directory, {}).setdefault(self.unit, []).append(rows)

    monkeypatch.setattr(PartWriter, "tell", tell)
    docs = [{"_id": f"d{n}", "title": "", "text": f"water boils at {n} degrees"} for n in range(12)]
    queries = [{"_id": f"q{n}", "text": f"what boils at {n}"} for n in range(3)]
    write_beir(tmp_path / "set", docs, queries, [(f"q{n}", f"d{n}", 1) for n in range(3)])
    models = every_system.write_models(tmp_path)
    text = dataset(tmp_path / "set") + every_system.systems(models, batch_size=2)
    pipeline = run(experiment(tmp_path, text))
    for stage in LONG:
        nodes = [node for node in pipeline.graph.nodes.values() if node.stage == stage]
        assert nodes, stage
        for node in nodes:
            artifact = node.artifact(pipeline.workspace)
            for receipt in artifact.receipts():
                rows = told[artifact.directory][receipt.unit]
                assert rows == sorted(rows) and rows[-1] == receipt.rows_in, (stage, rows, receipt.rows_in)
