"""Faults as models make them, planted in professional translations (NTREX, English to Dutch).

python benchmarks/planted.py [--rows 1000] [--data ../shared/data/ntrex]

Shows how many planted faults the checks name rightly, and how many of the untouched translations they would
send to repair or leave a note on. Length bounds are learned from the same rows, as in a run. Exits with 1
where a fault is missed.
"""

import argparse
import sys
from pathlib import Path

from setting import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from planted_faults import FAULTS, good_rows, plant

from beirnl.specs import CheckSpec
from beirnl.translation.checks import check_rows, needs_repair
from beirnl.translation.lengths import histogram, learn, ratios


def sentences(data: Path, file: str) -> list[tuple[str, str]]:
    text = (data / f"newstest2019-{file}.txt").read_text(encoding="utf-8-sig")
    return [("", line.strip()) for line in text.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "ntrex")
    arguments = parser.parse_args()
    rows = good_rows(
        sentences(arguments.data, "src.eng"), sentences(arguments.data, "ref.nld"), arguments.rows
    )
    spoilt, places = plant(rows)
    sources, translations, reasons, problems = map(list, zip(*spoilt, strict=True))
    bounds = learn(histogram(ratios(sources, translations, reasons)))
    statuses = check_rows(sources, translations, reasons, "en", "nl", CheckSpec(), problems, bounds)
    missed = [
        f"{fault.name}: {fault.what} is {statuses[place]}"
        for fault, place in zip(FAULTS, places, strict=True)
        if fault.name not in statuses[place].split(",")
    ]
    good = [status for place, status in enumerate(statuses) if place not in places]
    print(f"{len(FAULTS) - len(missed)} of {len(FAULTS)} planted faults caught under the right name")
    repaired, noted = sum(map(needs_repair, good)), sum(status != "ok" for status in good)
    shares = f"{repaired / len(good):.2%} sent to repair, {noted / len(good):.2%} with any note"
    print(f"{len(good)} good rows: {shares}")
    print("\n".join(missed), end="\n" if missed else "")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
