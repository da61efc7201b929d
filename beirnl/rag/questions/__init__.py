"""Multiple-choice questions: made by an LLM from documents, or brought by users."""

from beirnl.rag.questions.generating import ATTEMPTS, Generated, first_requests, generate
from beirnl.rag.questions.own import read_questions

__all__ = ["ATTEMPTS", "Generated", "first_requests", "generate", "read_questions"]
