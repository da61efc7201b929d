"""Evaluation: from runs and qrels to numbers, and from numbers to something people read.

    run, qrels --measures--> scores per query --summarise--> Record --tables--> terminal, Markdown, LaTeX, CSV
                                   |                            ^   `---page-----> one HTML file
                                   `---uncertainty--------------' intervals, tests, all pairs

    names          of measures, as ir_measures reads them; light, so that a plan loads no tables
    measures       trec_eval and other providers, values per query, means
    runs           run files made elsewhere, TREC files, equal depth, results of other tools
    uncertainty    resampling, randomisation tests, McNemar's test
    tables         of scores, conditions and uncertainty; as text, LaTeX, CSV, JSON
    page           the HTML report: plots, the view by query, its script
    paper          the tables of BEIR-NL, published figures beside ours
    translations   quality of translations, back-translation
    records        what all of them share: one value with its conditions, and the report
    formats        a report in every format

Every function takes and returns tables and values; only :mod:`.runs` and :mod:`.page` touch files.
"""
