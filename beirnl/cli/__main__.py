"""``python -m beirnl.cli``: the command line, where no script is installed."""

from beirnl.cli import main

main()
