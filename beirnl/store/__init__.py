"""What is kept: keys, parts, receipts, manifests, the journal of answers, and the workspace that holds them.

The receipt is the only commit. A part is written first, under a name that carries its attempt; the receipt
that names it is then put in place by one rename of a small file, or by one request to an object store. A part
without a receipt is never read, so a process that was killed, or one that comes back from the dead, can
neither lose nor overwrite committed work.
"""
