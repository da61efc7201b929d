"""``cluster.yaml`` is a file that Ray's autoscaler takes, and starts the machines that it says it does."""

import copy
import json
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "cluster.yaml").read_text()
CONFIG: dict[str, Any] = yaml.safe_load(TEXT)
TYPES: dict[str, dict[str, Any]] = CONFIG["available_node_types"]
WORKERS = {name: kind for name, kind in TYPES.items() if name != CONFIG["head_node_type"]}


def is_spot(kind: dict[str, Any]) -> bool:
    return kind["node_config"].get("InstanceMarketOptions", {}).get("MarketType") == "spot"


def flags(role: str) -> dict[str, str]:
    """Options of the role's ``ray start``, as a shell reads them."""
    command = CONFIG[f"{role}_start_ray_commands"][-1]
    words = shlex.split(command[command.index("ray start") :])[2:]
    return dict(word.partition("=")[::2] for word in words)


def launched(demands: list[dict[str, float]], unavailable: str | None = None) -> dict[str, int]:
    """Which workers Ray's own scheduler starts for these demands."""
    from ray.autoscaler.v2.instance_manager.config import AutoscalingConfig
    from ray.autoscaler.v2.scheduler import ResourceDemandScheduler, SchedulingRequest
    from ray.autoscaler.v2.utils import ResourceRequestUtil

    config = AutoscalingConfig(copy.deepcopy(CONFIG), skip_content_hash=True)
    asked = ResourceRequestUtil.group_by_count([ResourceRequestUtil.make(demand) for demand in demands])
    request = SchedulingRequest(
        node_type_configs=config.get_node_type_configs(),
        disable_launch_config_check=True,
        max_num_nodes=config.get_max_num_nodes(),
        resource_requests=asked,
        recoverable_resource_availabilities={unavailable: 0.0} if unavailable else {},
    )
    reply = ResourceDemandScheduler().schedule(request)
    assert not reply.infeasible_resource_requests
    starts = {launch.instance_type: launch.count for launch in reply.to_launch}
    return {name: count for name, count in starts.items() if name in WORKERS}


def test_it_follows_rays_schema_as_written():
    import ray.autoscaler

    schema = json.loads(Path(ray.autoscaler.__file__).with_name("ray-schema.json").read_text())
    jsonschema.validate(CONFIG, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(CONFIG | {"head_node": {}, "worker_node_type": 1}, schema)


def test_ray_prepares_and_validates_it():
    from ray.autoscaler._private.util import prepare_config, validate_config

    prepared = prepare_config(copy.deepcopy(CONFIG))
    validate_config(prepared)
    assert set(prepared["available_node_types"]) == set(TYPES)
    assert prepared["worker_setup_commands"] == CONFIG["setup_commands"]
    assert any("boto3" in command for command in prepared["head_setup_commands"])


def test_the_head_exists_and_takes_no_work():
    head = TYPES[CONFIG["head_node_type"]]
    assert head["resources"] == {"CPU": 0}
    assert head["max_workers"] == 0
    assert not is_spot(head)


def test_every_worker_type_declares_its_resources_and_bounds():
    for name, kind in WORKERS.items():
        assert kind["resources"]["CPU"] > 0, name
        assert kind["min_workers"] == 0, name
        assert 0 < kind["max_workers"] <= CONFIG["max_workers"], name
    assert CONFIG["max_workers"] >= max(kind["max_workers"] for kind in WORKERS.values())
    assert CONFIG["idle_timeout_minutes"] > 0


def test_there_are_cpu_workers_and_gpu_workers_of_both_markets():
    kinds = {(kind["resources"].get("GPU", 0) > 0, is_spot(kind)) for kind in WORKERS.values()}
    assert kinds == {(False, False), (True, False), (True, True)}
    assert [name for name, kind in TYPES.items() if is_spot(kind)] == ["gpu-spot"]


def test_both_gpu_types_are_the_same_machine_and_spot_goes_first():
    spot, demand = TYPES["gpu-spot"], TYPES["gpu-on-demand"]
    assert spot["resources"] == demand["resources"]
    assert spot["node_config"]["InstanceType"] == demand["node_config"]["InstanceType"]
    assert spot["priority"] > demand["priority"]


def test_one_image_for_all_and_no_node_is_kept_stopped():
    assert len({kind["node_config"]["ImageId"] for kind in TYPES.values()}) == 1
    assert CONFIG["provider"]["cache_stopped_nodes"] is False
    region = CONFIG["provider"]["region"]
    assert all(zone.startswith(region) for zone in CONFIG["provider"]["availability_zone"].split(","))


@pytest.mark.parametrize(
    ("demands", "expected"),
    [
        ([{"CPU": 1}] * 16, {"cpu": 1}),
        ([{"CPU": 1}] * 40, {"cpu": 3}),
        ([{"GPU": 1}], {"gpu-spot": 1}),
        ([{"GPU": 1, "CPU": 1}] * 3, {"gpu-spot": 3}),
        ([{"CPU": 16}, {"GPU": 1}], {"cpu": 1, "gpu-spot": 1}),
    ],
)
def test_demands_start_the_workers_that_are_meant_for_them(demands, expected):
    assert launched(demands) == expected


def test_without_spot_capacity_a_gpu_is_started_on_demand():
    assert launched([{"GPU": 1}], unavailable="gpu-spot") == {"gpu-on-demand": 1}


@pytest.mark.parametrize("role", ["head", "worker"])
def test_ray_is_stopped_and_started_with_flags_that_it_has(role):
    from ray.scripts.scripts import start

    stop, begin = CONFIG[f"{role}_start_ray_commands"]
    assert stop == "ray stop"
    assert "ulimit -n 65536" in begin
    assert "unset OMP_NUM_THREADS" in begin
    given = flags(role)
    assert set(given) <= {option for parameter in start.params for option in parameter.opts}
    lowest, highest = int(given.pop("--min-worker-port")), int(given.pop("--max-worker-port"))
    ports = [int(value) for value in given.values() if value.isdigit()]
    assert lowest < highest
    assert not [port for port in ports if lowest <= port <= highest]
    if role == "head":
        assert given["--autoscaling-config"] == "~/ray_bootstrap_config.yaml"
        assert given["--dashboard-host"] == "127.0.0.1"
    else:
        assert given["--address"] == f"$RAY_HEAD_IP:{flags('head')['--port']}"


def test_the_checkout_is_sent_without_what_git_ignores_and_installed_with_its_extras():
    (remote,) = CONFIG["file_mounts"]
    assert CONFIG["file_mounts"][remote] == "."
    assert CONFIG["rsync_filter"] == [".gitignore"]
    assert ".git" in CONFIG["rsync_exclude"]
    installs = [command for command in CONFIG["setup_commands"] if "pip install" in command]
    (extras,) = re.findall(r"\$HOME/beirnl\[([a-z,-]+)\]", " ".join(installs))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert Path(remote).name == "beirnl"


def test_the_commands_are_shell():
    lists = [value for key, value in CONFIG.items() if key.endswith("_commands")]
    for command in (command for some in lists for command in some):
        checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True)
        assert checked.returncode == 0, (command, checked.stderr)


def test_the_commands_of_the_shared_workspace_can_be_uncommented():
    block = TEXT[TEXT.index("initialization_commands:") : TEXT.index("# One environment")]
    opened = block.replace("initialization_commands: []", "initialization_commands:").replace(
        "\n#   -", "\n   -"
    )
    commands = yaml.safe_load(opened)["initialization_commands"]
    assert any("mount -t nfs4" in command for command in commands)
