"""The shipped config file of Ray Serve: Ray reads it, and its application and arguments are there."""

import importlib

import yaml
from support import ROOT

from beirnl.serve.settings import Settings


def test_the_shipped_config_builds_the_application_with_what_the_command_has_by_default():
    from ray.serve.schema import ServeDeploySchema

    config = ServeDeploySchema.model_validate(yaml.safe_load((ROOT / "serve.yaml").read_text("utf-8")))
    (application,) = config.applications
    module, _, name = application.import_path.partition(":")
    assert callable(getattr(importlib.import_module(module), name))
    settings = Settings.model_validate(application.args)
    assert (ROOT / settings.experiment).is_file()
    assert settings == Settings(experiment=settings.experiment, replicas=2)
    assert config.http_options.request_timeout_s > settings.timeout
