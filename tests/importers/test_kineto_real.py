"""Real PyTorch traces of three vendors, against counts taken from the JSON by slow means."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from tests.importers.slow_kineto import (
    DEVICE,
    crossings,
    everything,
    imported,
    is_custom,
    lane,
    launches,
    raw,
    shown,
    texts,
)

from opscope.analyse.summary import summary
from opscope.importers.building import CROSSINGS
from opscope.model import Kind, LinkKind, Phase

Sums = dict[str, tuple[int, int]]  #: by operator: calls, their wall time in ns

#: file: (spans, crossings, device spans that nothing launched, that no operator launched, sums)
FILES: dict[str, tuple[int, int, int, int, Sums]] = {
    "activation_checkpoint": (14802, 5, 968, 968, {}),
    "bert_small_h100": (674, 0, 0, 0, {}),
    "bert_small_mi300": (743, 0, 0, 0, {}),
    "compile_triton_small": (114, 0, 0, 0, {}),
    "eager_nested_custom_ops": (
        7116,
        0,
        0,
        2,
        {
            "vllm::all_reduce": (73, 12_642_189),
            "_C::rms_norm": (1, 20_312),
            "_C::rotary_embedding": (36, 543_676),
            "_C::static_scaled_fp8_quant": (36, 403_603),
            "vllm::unified_attention_with_output": (36, 9_125_333),
            "_C_cache_ops::reshape_and_cache_flash": (36, 482_638),
            "_C::fused_add_rms_norm": (72, 966_863),
            "vllm::moe_forward": (36, 18_847_841),
            "vllm::all_gather": (1, 456_337),
        },
    ),
    "graph_replay_ownerless_kernels": (650, 0, 0, 547, {}),
    "normalization_forward_backward": (1447, 0, 0, 0, {}),
    "serving_prefill_decode": (
        5391,
        0,
        0,
        2,
        {
            "sglang_profiler::forward_batch_info_compute_position_339": (1, 127_551),
            "sglang_profiler::forward_batch_info_compute_position_triton_340": (1, 104_776),
            "sglang_profiler::rmsnorm_rmsnorm2d_fwd_109": (73, 1_615_180),
            "aiter::rmsnorm": (73, 919_092),
            "aiter::gemm_a16w16": (144, 4_911_690),
            "sglang_profiler::utils_apply_qk_norm_487": (36, 4_775_048),
            "sglang_profiler::utils__reshape_for_qk_norm_486": (72, 1_178_986),
            "sgl_kernel::rotary_embedding": (36, 203_504),
            "sglang_profiler::memory_pool__set_kv_buffer_impl_353": (36, 905_107),
            "sglang::store_cache": (36, 357_273),
            "sglang_profiler::mha__mha_batch_prefill_167": (36, 1_452_581),
            "aiter::mha_batch_prefill": (36, 901_236),
            "sglang_profiler::rmsnorm_rmsnorm2d_fwd_with_add_110": (72, 1_201_939),
            "aiter::add_rmsnorm": (72, 731_544),
            "sgl_kernel::silu_and_mul": (36, 191_906),
        },
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_in_the_file_is_in_the_session(name: str) -> None:
    spans, crossing, orphans, ownerless, sums = FILES[name]
    session = imported(name)
    told = texts(session)
    assert len(session.spans) == spans == len(raw(name))
    assert Counter(told[i] for i in session.spans["id"].tolist()) == Counter(map(shown, raw(name)))
    found = {one.what: one.count for one in session.processes[0].findings}
    assert found.get(CROSSINGS, 0) == crossing == crossings(name)
    launched = launches(name)
    assert found.get("device spans without a launching operator", 0) == orphans
    assert orphans == sum(by is None for _, by, _ in launched)
    assert ownerless == sum(not is_op for _, _, is_op in launched)
    assert session.processes[0].damage == ""
    calls: dict[str, list[int]] = defaultdict(list)
    for event in filter(is_custom, raw(name)):
        calls[event["name"]].append(event["end"] - event["at"])
    assert sums == {op: (len(walls), sum(walls)) for op, walls in calls.items()}
    totals: dict[str, tuple[int, int]] = {}
    for row in summary(session):
        number, wall = totals.get(row.op, (0, 0))
        assert row.wall_ns is not None
        totals[row.op] = number + row.calls, wall + row.wall_ns
    assert totals == sums


@pytest.mark.parametrize("name", FILES)
def test_device_work_is_linked_to_what_launched_it(name: str) -> None:
    session = imported(name)
    told = texts(session)
    links = session.links[session.links["kind"] == LinkKind.LAUNCH]
    pairs = zip(links["source"].tolist(), links["target"].tolist(), strict=True)
    expected = Counter((shown(by), shown(work)) for work, by, _ in launches(name) if by)
    assert Counter((told[source], told[target]) for source, target in pairs) == expected


@pytest.mark.parametrize("name", ["eager_nested_custom_ops", "serving_prefill_decode"])
def test_the_owner_is_the_innermost_custom_operator_around(name: str) -> None:
    session = imported(name)
    told = texts(session)
    by_lane = defaultdict(list)
    for event in filter(is_custom, raw(name)):
        by_lane[lane(event)].append(event)

    def owner(inner: dict[str, Any]) -> dict[str, Any] | None:
        found = [
            outer
            for outer in by_lane[lane(inner)]
            if outer["at"] <= inner["at"] and inner["end"] <= outer["end"] and outer is not inner
        ]
        return min(found, key=lambda outer: outer["end"] - outer["at"], default=None)

    expected = Counter(
        (shown(event), shown(owner(event))) for event in raw(name) if event["cat"] not in DEVICE
    )
    for work, by, _ in launches(name):
        expected[shown(work), shown(by if by and is_custom(by) else by and owner(by))] += 1
    rows = session.spans
    pairs = zip(rows["id"].tolist(), rows["owner"].tolist(), strict=True)
    assert Counter((told[span], told[owner]) for span, owner in pairs) == expected
    deepest = max(len(row.path) for row in summary(session))
    assert deepest == {"eager_nested_custom_ops": 2, "serving_prefill_decode": 3}[name]


@pytest.mark.parametrize(
    ("name", "number"), [("normalization_forward_backward", 51), ("activation_checkpoint", 213)]
)
def test_backward_calls_are_linked_as_the_arrows_of_the_file_say(name: str, number: int) -> None:
    ends: dict[str, dict[int, int]] = {"s": {}, "f": {}}
    for event in everything(name):
        if event.get("cat") == "fwdbwd":
            ends[event["ph"]][event["id"]] = int(event["ts"] * 1000)
    arrows = {ends["f"][key]: at for key, at in ends["s"].items()}
    assert len(arrows) == number
    starts = set(arrows.values())
    forward = {
        e["name"]
        for e in raw(name)
        if e["at"] in starts and e["args"].get("Sequence number", -1) >= 0
    }
    session = imported(name, *sorted(forward))
    told = texts(session)
    rows = {int(row["id"]): row for row in session.spans}
    links = session.links[session.links["kind"] == LinkKind.BACKWARD]
    found = {}
    for source, target in zip(links["source"].tolist(), links["target"].tolist(), strict=True):
        assert rows[source]["kind"] == rows[target]["kind"] == Kind.CALL
        assert (rows[source]["phase"], rows[target]["phase"]) == (Phase.BACKWARD, Phase.FORWARD)
        assert told[source][0] == told[target][0]
        found[told[source][1]] = told[target][1]
    assert found == arrows
