"""The experiment file: errors are one line and name the nearest valid key."""

import os

import pytest

from beirnl.config import load_experiment
from beirnl.errors import ConfigError

MINIMAL = 'name = "a"\n[[system]]\nkind = "bm25"\nname = "s"\n[[dataset]]\nname = "sample"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MINIMAL + 'langage = "en"', "did you mean 'language'"),
        (MINIMAL + '[[system]]\nkind = "bm25"\nname = "b"\nprofil = "flat"', "did you mean 'profile'"),
        (MINIMAL + '[translation]\nto = "nl"\nmodle = "x"', "did you mean 'model'"),
        (
            MINIMAL + "[translation]\nto = 'nl'\n[translation.checks]\nmax_lenght_ratio = 3",
            "max_length_ratio",
        ),
        ("naem = 'a'\n[[dataset]]\nname = 'sample'", "did you mean 'name'"),
        (MINIMAL + "[runtime]\nworkers = 0", "runtime.workers"),
        (MINIMAL + '[[system]]\nkind = "bm52"\nname = "b"', "bm25"),
        (MINIMAL + "[[dataset]]\nname = 'sample'", "two datasets are called 'sample'"),
        (MINIMAL + '[[system]]\nkind = "rerank"\nname = "r"\nmodel = "m"\nfirst = "bm"', "'bm'"),
        (MINIMAL + '[[system]]\nkind = "bm25"\nname = "b"\ndatasets = ["sampel"]', "did you mean 'sample'"),
        ('name = "a b"\n[[dataset]]\nname = "sample"', "name"),
        ("name = 'a'", "dataset"),
        ("name = 'a'\n[[dataset]]\nname = 'sample'", "nothing to do"),
        (MINIMAL + "[evaluation]\nmeasures = []", "evaluation.measures"),
        (MINIMAL + "[runtime]\ndevice = 'gpuu'", "runtime.device"),
        (MINIMAL + '[[system]]\nkind = "bm25"\nname = "b"\nk1 = inf', "finite"),
        (MINIMAL + '[[system]]\nkind = "bm25"\nname = "b"\ndepth = 1000000000', "depth"),
        ("name = ", "is not TOML"),
    ],
)
def test_errors_are_one_line_with_the_file_and_the_remedy(tmp_path, text, expected):
    path = tmp_path / "e.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_experiment(path)
    message = str(caught.value)
    assert str(path) in message and expected in message and "\n" not in message


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="is not there"):
        load_experiment(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_experiment(tmp_path)


def test_paths_resolve_against_the_file_and_variables_are_replaced(tmp_path, monkeypatch):
    from beirnl.config import resolve_path

    file = tmp_path / "experiments" / "e.toml"
    monkeypatch.setenv("SOMEWHERE", "/data")
    assert resolve_path("../workspace", file) == tmp_path / "workspace"
    assert str(resolve_path("${SOMEWHERE}/scifact", file)) == "/data/scifact"
    monkeypatch.delenv("BEIRNL_DATA", raising=False)
    assert resolve_path("${BEIRNL_DATA}/scifact", file).parts[-3:] == ("shared", "data", "scifact")
    with pytest.raises(ConfigError, match="NOT_SET is not set"):
        resolve_path("${NOT_SET}/x", file)


def test_every_shipped_experiment_is_valid():
    from support import ROOT

    files = sorted((ROOT / "experiments").glob("*.toml"))
    assert {"quickstart", "scifact", "libreoffice"} <= {load_experiment(f).name for f in files}


def test_threads_are_shared_by_the_workers(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(MINIMAL + "[runtime]\nworkers = 2\n")
    cores = len(os.sched_getaffinity(0))
    assert load_experiment(path).runtime.worker_threads == max(1, cores // 2)
