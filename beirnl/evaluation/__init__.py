"""Evaluation: from runs and qrels to numbers, and from numbers to something people read.

    run, qrels --measures--> scores per query --summarise--> Record --tables--> terminal, Markdown
                                   |                            ^   `---page-----> one HTML file
                                   `---uncertainty--------------' intervals, tests, all pairs
    runs --comparing--> runs, equally deep
    run <--trec--> TREC files

Every function takes and returns tables and values; only :mod:`.trec` and :mod:`.page` touch files.
"""
