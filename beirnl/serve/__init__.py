"""Search as a service over the artifacts of an experiment: a question, and what every system finds.

- :mod:`beirnl.serve.searching` puts one query through a system, as the stages do with all of them;
- :mod:`beirnl.serve.models` names the encoders and rerankers that this asks;
- :mod:`beirnl.serve.collections` knows what is served: texts, judgements and scores, by dataset and language;
- :mod:`beirnl.serve.http` answers requests, within limits;
- :mod:`beirnl.serve.application` is all of it on Ray Serve.
"""
