"""Tables of the agreement between manual and generated questions."""

from beirnl.evaluation.tables import Cell, Column, Table, number
from beirnl.rag.agreement import PAPER, Agreement, Correlation
from beirnl.wording import counted

_SECTION = "Manual and generated questions"
_NONE = "–"
_NOTE = (
    "BES4RAG (Table 2) prints 0.78 raw and 0.90 after min-max scaling of the whole matrix. That scaling is "
    "one affine map of all entries, under which Pearson's r stays as it is: the 0.90 is not reproducible "
    "from what the paper describes"
)


def tables(found: Agreement) -> list[Table]:
    """Accuracies on both sets side by side, and Pearson's r of them under every normalisation."""
    return [_matrices(found), _correlations(found)]


def _matrices(found: Agreement) -> Table:
    manual, generated = found.questions
    groups = {
        f"manual ({counted(manual, 'question')})": found.manual,
        f"generated ({generated:,})": found.generated,
    }
    columns = [Column("system"), *(Column(f"k = {k}", group) for group in groups for k in found.ks)]
    rows = [
        [Cell(system), *(Cell(f"{v:.3f}", float(v)) for matrix in groups.values() for v in matrix[at])]
        for at, system in enumerate(found.systems)
    ]
    return Table(_SECTION, f"Accuracy by set, answered by {found.llm}", "", columns, rows)


def _correlations(found: Agreement) -> Table:
    rows = [
        [*_head(one), *_value(one), number(one.entries), number(one.undefined)] for one in found.correlations
    ]
    heads = ("normalisation", "whose", "k = 0", "Pearson's r", "as published", "entries", "undefined")
    caption = (
        "Of the corresponding entries of both matrices; in brackets 95 % by the standard error of "
        "resampled questions (each set apart) on Fisher's scale. A row, column or matrix that is constant "
        f"has no min-max scaling: its entries are undefined and left out; {_NONE}: r itself is. k = 0 is one "
        "number for all systems, so that it repeats itself in every row."
    )
    title = f"Agreement, answered by {found.llm}"
    return Table(_SECTION, title, caption, [Column(head) for head in heads], rows, [("a", _NOTE)])


def _head(one: Correlation) -> list[Cell]:
    whose = "BES4RAG" if one.normalisation in PAPER else "ours"
    return [Cell(one.normalisation), Cell(whose), Cell("with" if one.with_bare else "without")]


def _value(one: Correlation) -> list[Cell]:
    published = PAPER.get(one.normalisation) if one.with_bare else None
    beside = Cell(_NONE)
    if published is not None:
        beside = Cell(
            f"{published:.2f}", published, notes="a" if published == PAPER["min-max of the matrix"] else ""
        )
    if one.r is None:
        return [Cell(_NONE), beside]
    spread = "" if one.low is None else f" [{one.low:.2f}, {one.high:.2f}]"
    return [Cell(f"{one.r:.2f}{spread}", one.r), beside]
