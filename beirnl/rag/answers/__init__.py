"""Answers to questions (BES4RAG, section 3.6): the distinct prompts, what is read out of their answers.

A plan finds the prompts that have to be asked, each once; they are asked in shards of any size; what was
read out of the answers is then laid out as one reply per question, system, k and order of the options.
"""

from beirnl.rag.answers.matching import match_answers
from beirnl.rag.answers.planning import PROMPTS, REFERENCES, Plan, plan_prompts
from beirnl.rag.answers.prompts import option_numbers, requests_for, rotations
from beirnl.rag.answers.reading import read_logprobs, read_option
from beirnl.rag.answers.replies import ANSWERED, answered_table, replies_table

__all__ = [
    "ANSWERED",
    "PROMPTS",
    "REFERENCES",
    "Plan",
    "answered_table",
    "match_answers",
    "option_numbers",
    "plan_prompts",
    "read_logprobs",
    "read_option",
    "replies_table",
    "requests_for",
    "rotations",
]
