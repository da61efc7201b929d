"""The tables of a question answering experiment, as Arrow schemas."""

import pyarrow as pa

#: Documents. ``id`` is the path relative to the folder (two files of one name in two folders stay apart),
#: ``description`` stands before each passage where there is one, ``group`` is the folder.
DOCUMENTS = pa.schema(
    [
        ("id", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("description", pa.string()),
        ("group", pa.string()),
    ]
)
#: Passages. ``id`` is ``DOC#N``, N from 0; ``text`` is what is embedded and shown to the LLM: the line of the
#: description first where there is one, then characters ``start`` to ``end`` of the document; ``tokens`` are
#: those of ``text`` in the tokenizer that cut it, without special tokens and prefix.
PASSAGES = pa.schema(
    [
        ("id", pa.string()),
        ("doc_id", pa.string()),
        ("text", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("tokens", pa.int32()),
    ]
)
#: Questions. ``doc_id`` is empty where no document is known to hold the answer, ``options`` are 4 unless
#: the experiment says otherwise, ``answer`` is the index of the correct one, ``explanations`` are one per
#: option (or none), ``origin`` is ``generated`` or ``user``.
QUESTIONS = pa.schema(
    [
        ("id", pa.string()),
        ("doc_id", pa.string()),
        ("question", pa.string()),
        ("options", pa.list_(pa.string())),
        ("answer", pa.int8()),
        ("explanations", pa.list_(pa.string())),
        ("origin", pa.string()),
    ]
)
#: What an LLM replied to a question. ``system`` is the embedding model or BM25 (empty for ``k`` = 0),
#: ``permutation`` the rotation of the options that was shown, ``answer`` the index in the *original* order of
#: the options (-1: invalid), ``logprobs`` of the options in the original order (empty where not told),
#: ``context`` the ids of the passages in the prompt, ``cut`` the whole passages left out because the prompt
#: was too long.
REPLIES = pa.schema(
    [
        ("question_id", pa.string()),
        ("llm", pa.string()),
        ("system", pa.string()),
        ("k", pa.int32()),
        ("permutation", pa.int8()),
        ("answer", pa.int8()),
        ("logprobs", pa.list_(pa.float32())),
        ("context", pa.list_(pa.string())),
        ("cut", pa.int32()),
        ("prompt_tokens", pa.int32()),
    ]
)
