"""Multiple-choice questions: made by an LLM from documents, or brought by users."""

from beirnl.rag.questions.generating import ATTEMPTS, Generated, generate
from beirnl.rag.questions.own import read_questions

__all__ = ["ATTEMPTS", "Generated", "generate", "read_questions"]
