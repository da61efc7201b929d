"""What the profiles of an experiment and its systems mean for a system on a dataset."""

from dataclasses import replace

from beirnl import registry
from beirnl.config import Bm25System, Experiment, System
from beirnl.graph.nodes import Texts
from beirnl.registry import Bm25Entry, ProfileEntry


def profile_of(experiment: Experiment, system: System) -> ProfileEntry | None:
    """The profile that a system states, or the experiment's; None if neither states one."""
    named = registry.profiles().get(system.profile or "")
    return named or registry.profiles().get(experiment.evaluation.profile or "")


def bm25_conditions(experiment: Experiment, system: Bm25System) -> Bm25Entry:
    """The conditions of BM25 that a system states, or those of its profile, or Elasticsearch's."""
    if stated := registry.bm25_profiles().get(system.profile or ""):
        return stated
    profile = profile_of(experiment, system)
    return registry.bm25_profiles()[profile.bm25 if profile else "elasticsearch"]


def conditions_name(experiment: Experiment, system: System) -> str:
    """Whose conditions hold: of BM25 its own, else those of the profile; empty without one."""
    if isinstance(system, Bm25System):
        return bm25_conditions(experiment, system).name
    profile = profile_of(experiment, system)
    return profile.name if profile else ""


def under_profile(experiment: Experiment, system: System, texts: Texts) -> Texts:
    """Texts with the rule for self-matches of a system's profile.

    What the dataset itself states holds in every profile. A folder that the registry does not know keeps
    them, since equal ids can be a coincidence.
    """
    profile, entry = profile_of(experiment, system), registry.dataset(texts.dataset.name)
    if profile is None or entry is None or texts.dataset.remove_self_matches is not None:
        return texts
    return replace(texts, remove_self_matches=profile.removes_self_matches(entry))


def instruction(experiment: Experiment, system: System, texts: Texts) -> str | None:
    """The task in words that a system's profile tells a model; None: that of the model card."""
    profile, entry = profile_of(experiment, system), registry.dataset(texts.dataset.name)
    if profile is None or profile.instruction == "card":
        return None
    return registry.instruction(entry.original if entry else texts.dataset.name, texts.language)
