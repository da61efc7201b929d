"""Settings of the whole suite, before anything heavy is imported."""

import os

from hypothesis import settings

for name, value in {
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "TOKENIZERS_PARALLELISM": "false",
}.items():
    os.environ.setdefault(name, value)

settings.register_profile(
    "shared-machine", deadline=None
)  # a machine may be slow at times; that is no failure
settings.load_profile("shared-machine")
