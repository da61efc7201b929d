"""Accuracies of a reader that is right when it is shown the answer, against the recall of the answer's text.

Real exam questions over Italian paragraphs, through the whole pipeline, for BM25 and three encoders, one of
them entered twice. Nothing is timed: exits with 1 if one answer is right without its text in the context, or
wrong with it; or if accuracies, intervals, ranking or tests differ from those that scipy gives for counts
made from the runs alone; or if an encoder differs from itself. A run that was stopped goes on where it was.

python benchmarks/rag_exams.py FOLDER [--questions N] [--paragraphs N] [--encoders NAME ...]
"""

import argparse
import sys
from pathlib import Path

from setting import ROOT, run_watched

# isort: split
from exam_questions import DECLARED, KS, Setup, answered, differences, recounted, usable, write_exams

ENCODERS = ("use-multilingual-v3", "all-MiniLM-L6-v2", "multilingual-e5-small-q4")
FLOAT32 = ("use-multilingual-v3",)  # runs in nothing else


def systems(encoders: list[str], dtype: str) -> str:
    """Tables of the experiment file: BM25, encoders, and the last one but one a second time."""
    made = '[[system]]\nname = "BM25"\nkind = "bm25"\n'
    for name, model in [*((name, name) for name in encoders), (again(encoders), encoders[-2:][0])]:
        made += f'[[system]]\nname = "{name}"\nkind = "dense"\nmodel = "{model}"\n'
        made += "" if model in FLOAT32 else f'dtype = "{dtype}"\n'
    return made


def again(encoders: list[str]) -> str:
    """The second name of the encoder that is entered twice."""
    return f"{encoders[-2:][0]}-again"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="for documents and workspace")
    parser.add_argument("--source", type=Path, default=ROOT.parent / "shared" / "data" / "exams_it")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--paragraphs", type=int)
    parser.add_argument("--encoders", nargs="+", default=list(ENCODERS))
    parser.add_argument("--dtype", default="float32", help="of the encoders; bfloat16 is faster on some CPUs")
    options = parser.parse_args()
    tables = systems(options.encoders, options.dtype)
    file = write_exams(options.folder, options.source, tables, options.questions, options.paragraphs)
    run = run_watched(file)
    found, counted = answered(run.pipeline, options.folder), recounted(run.pipeline, options.folder)
    total = len(found[Setup("", 0)])
    print(f"{total} questions (of {sum(1 for _ in usable(options.source))} whose options differ)")
    print("right answers by k:", *(f"{k:5}" for k in KS[1:]))
    for system in dict.fromkeys(setup.system for setup in counted if setup.k):
        print(f"{system:26}", *(f"{sum(found[Setup(system, k)]):5}" for k in KS[1:]))
    wrong = list(
        differences(run.pipeline, options.folder, (options.encoders[-2:][0], again(options.encoders)))
    )
    print("\n".join(wrong) if wrong else f"all equal to what was counted; compared at k = {DECLARED}")
    run.print()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
