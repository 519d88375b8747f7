"""Parashar et al., ISCA 2017: SCNN's speed-up, utilisation, idle cycles, energy, layer by layer.

Zeros are drawn at the paper's densities; nothing is fitted to its results.  Where ours differ, the
row says where the PEs' cycles went, and what the speed-up would be without a cause of loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from archsim.machines.scnn.design import SCNN_4PE, SCNN_ISCA17
from archsim.papers import scnn_energy_rows
from archsim.papers.evidence import Measured, switch
from archsim.papers.figures import (
    Comparison,
    Figure,
    Progress,
    Row,
    load_figures,
    read_paper,
    silent,
)
from archsim.papers.scnn_energy_rows import (
    area_rows,
    energy_aims,
    layer_energy_rows,
    network_energy_rows,
    sweep_energy_rows,
)
from archsim.papers.scnn_figures import layer_figures, quantity, unpublished
from archsim.papers.scnn_layers import (
    NETWORKS,
    SparseLayer,
    at_density,
    folded_dense_cycles,
    sparse_layers,
)
from archsim.papers.scnn_notes import NOTES
from archsim.papers.scnn_real import real_rows_or_reason
from archsim.papers.scnn_tally import Tally, total
from archsim.papers.scnn_what_if import (
    QUEUES,
    WHAT_IFS,
    Bars,
    WhatIf,
    bars,
    shares_would_be,
    side_by_side,
    timed,
    would_be,
)
from workloads.counts import counted

SWEPT = ("GoogLeNet 3a", "GoogLeNet 4e", "GoogLeNet 5a")
"""Modules of the density sweep, with a sample of their filters: one of each size of plane, which
take 37, 49 and 15 % of the three's dense cycles, as all of their size take 42, 46 and 12 % of the
network's."""

NETWORK_SPEEDS = "networks (figure 9)"

LATENCIES: dict[Literal["both", "weights", "activations"], str] = {
    "both": "SCNN",
    "weights": "SparseW",
    "activations": "SparseA",
}


def compare(progress: Progress = silent) -> Comparison:
    """The paper's figures, ours beside them."""
    figures = load_figures("scnn")
    measured: dict[str, Tally] = {}
    supposed: dict[str, dict[str, float]] = {}
    shares: dict[str, dict[str, dict[str, float]]] = {}
    networks: list[Row] = []
    queues: list[Row] = []
    energies: list[Row] = []
    for network in NETWORKS:
        layers = sparse_layers(network)
        progress(f"{network}: {counted(len(layers), 'layer')}")
        ours = bars(layers)
        measured.update(ours)
        for what in WHAT_IFS:
            progress(f"{network}: {what.name}")
            for bar, speedup in would_be(layers, what).items():
                name = f"{network} all" if bar == "all" else bar
                supposed.setdefault(name, {})[what.name] = speedup
            for bar, found in shares_would_be(layers, what).items():
                for name, value in found.items():
                    shares.setdefault(bar, {}).setdefault(name, {})[what.name] = value
        networks += network_rows(figures, network, ours, supposed[f"{network} all"])
        energies += network_energy_rows(figures, network, ours)
        progress(f"{network}: queues")
        queues += queue_rows(network, layers)
    layered = layer_rows(measured, supposed, shares)
    energies += layer_energy_rows(measured)
    swept = sweep_rows(progress)
    areas = area_rows(figures)
    rows = [*networks, *queues, *layered, *energies, *swept, *pe_rows(figures, progress), *areas]
    real, remark = real_rows_or_reason(progress)
    return Comparison(
        paper="scnn",
        title=str(read_paper("scnn")["title"]),
        rows=(*rows, *real),
        notes=(*NOTES, energy_aims([*energies, *swept]), aims(networks, layered, measured), remark),
    )


def aims(networks: list[Row], layered: list[Row], measured: Bars) -> str:
    """How many of the speed-ups are within what was aimed at, and how many of pairs alone are."""
    means = [row.within for row in networks if row.published.key.endswith(".speed")]
    speeds = [row.within for row in layered if row.published.key.endswith(".speed")]
    figures = layer_figures()
    alone = [
        figures[f"{bar}.speed"].row(tally.bare_speedup, missing=ZEROS).within
        for bar, tally in measured.items()
    ]
    folded = measured_folded(measured)
    means_alone = [f"AlexNet {folded.bare_speedup:.2f} (DCNN's conv1 folded)"]
    for network in ("GoogLeNet", "VGG-16"):
        whole = total(t for bar, t in measured.items() if bar.startswith(network))
        means_alone.append(f"{network} {whole.bare_speedup:.2f}")
    return (
        f"Note 11. Aimed at: each network's mean within 10 % ({sum(map(bool, means))} of "
        f"{len(means)}), nine layers of ten within 15 % ({sum(map(bool, speeds))} of "
        f"{len(speeds)}). AlexNet's mean is above the paper's because DCNN starves in conv1; with "
        f"that folded (note 2) it is {folded.speedup:.2f}. Of pairs alone {sum(map(bool, alone))} "
        f"of {len(alone)} layers would be within 15 %, and the means {', '.join(means_alone)}. "
        "What is left are vectors that lists of one channel do not fill, PEs that the plane does "
        "not reach, and where lists are shortest (5a, 5b) the broadcast and empty blocks."
    )


def network_rows(
    figures: Mapping[str, Figure], network: str, ours: Bars, supposed: Mapping[str, float]
) -> list[Row]:
    """A network's mean, its oracle, and what its mean would be; AlexNet's with DCNN's fold too."""
    whole = total(ours.values())
    oracle = "interpolated densities (note 3)" if network == "GoogLeNet" else "Figure 1's densities"
    folded, evidence = measured_folded(ours) if network == "AlexNet" else None, _switches(supposed)
    speeds, oracles = list(evidence), list[Measured]()
    if folded is not None:
        speeds.append(switch("DCNN's conv1 folded (note 2)", folded.speedup, FOLDED))
        oracles.append(switch("DCNN's conv1 folded (note 2)", folded.oracle, FOLDED))
    rows = [
        figures[f"{network}.speed"].row(
            whole.speedup, _spent(whole), measured=speeds, missing=ZEROS
        ),
        figures[f"{network}.oracle"].row(
            whole.oracle, f"{oracle}; DCNN: note 2", measured=oracles, missing=DENSITIES
        ),
    ]
    if folded is not None:
        remark = "with DCNN as note 2 supposes"
        ratio = folded.speedup / whole.speedup
        scaled = [replace(one, value=one.value * ratio) for one in evidence]
        rows.append(
            figures["AlexNet.folded_speed"].row(
                folded.speedup, remark, measured=scaled, missing=ZEROS
            )
        )
        rows.append(figures["AlexNet.folded_oracle"].row(folded.oracle, remark, missing=DENSITIES))
    rows += [
        unpublished(network, name, NETWORK_SPEEDS).row(speed, "note 6")
        for name, speed in supposed.items()
    ]
    return rows


def queue_rows(network: str, layers: tuple[SparseLayer, ...]) -> list[Row]:
    """A network's mean by the places of the banks' queues."""
    chosen = SCNN_ISCA17.bank_queue
    rows: list[Row] = []
    for what in QUEUES:
        places = what.design.bank_queue
        remark = "as in all other rows" if places == chosen else "a sample (note 6)"
        figure = unpublished(network, what.name, "places before each bank (ours)")
        rows.append(figure.row(would_be(layers, what)["all"], f"{remark}; note 5"))
    return rows


def measured_folded(measured: Bars) -> Tally:
    """AlexNet's layers, with DCNN's conv1 folded (note 2)."""
    layers = sparse_layers("AlexNet")
    whole = total(measured[one.bar] for one in layers)
    first = layers[0]
    more = folded_dense_cycles(first.layer) - measured[first.bar].dense
    return replace(whole, dense=whole.dense + more)


def _spent(tally: Tally) -> str:
    """Where PE cycles went, the largest first, as far as they are 1 % or more."""
    losses = {name: share for name, share in tally.losses().items() if share >= 1}
    products = 100 - sum(tally.losses().values())
    listed = sorted(losses.items(), key=lambda entry: -entry[1])
    parts = [f"products {products:.0f}", *(f"{name} {share:.0f}" for name, share in listed)]
    return f"% of PE cycles: {', '.join(parts)}"


ZEROS = "zeros are drawn, not the networks' own (note 1)"
DENSITIES = "densities are read from a figure, or interpolated (note 3), and DCNN supposed (note 2)"
FOLDED = "archsim.papers.scnn.measured_folded"
WHAT_IF = "archsim.papers.scnn_what_if.would_be"


def _switches(supposed: Mapping[str, float]) -> list[Measured]:
    """What a figure would be without a cause of loss."""
    return [switch(name, value, WHAT_IF) for name, value in supposed.items()]


def layer_rows(
    measured: Bars,
    supposed: Mapping[str, Mapping[str, float]],
    shares: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None,
) -> list[Row]:
    """Figures 9 and 10, for the bars that were measured.

    supposed: by bar and what-if, the speed-up; shares: by bar and quantity, that by what-if.
    """
    rows: list[Row] = []
    for key, figure in layer_figures().items():
        bar, _, name = key.rpartition(".")
        if bar in measured and name not in scnn_energy_rows.KEYS:
            ours = measured[bar]
            value = ours.speedup if name == "speed" else float(getattr(ours, name))
            others = (shares or {}).get(bar, {}).get(name, {})
            found = _switches(supposed.get(bar, {}) if name == "speed" else others)
            found += _folded(bar, name, value, ours)
            missing = DENSITIES if name == "oracle" else ZEROS
            rows.append(
                figure.row(value, _reason(name, ours, bar), measured=found, missing=missing)
            )
    return rows


def _folded(bar: str, name: str, value: float, ours: Tally) -> list[Measured]:
    """AlexNet conv1's speed-ups over a DCNN that folds its stride (note 2)."""
    if bar != "AlexNet conv1" or name not in ("speed", "oracle"):
        return []
    dense = folded_dense_cycles(sparse_layers("AlexNet")[0].layer)
    return [switch("DCNN's conv1 folded (note 2)", value * dense / ours.dense, FOLDED)]


def _reason(name: str, ours: Tally, bar: str) -> str:
    between = bar.startswith("GoogLeNet") and not bar.endswith(("3a", "5b"))
    parts = ["interpolated densities (note 3)"] if between else []
    if name == "speed":
        parts.append(_spent(ours))
    elif name == "oracle":
        first = bar.endswith(("conv1", "conv1_1"))
        parts += ["DCNN with 3 channels (note 2)"] if first else []
        parts += [] if between or first else ["Figure 1's densities"]
    elif name == "utilization":
        losses = ours.losses()
        parts.append(f"note 4; besides, bank conflicts {losses['bank conflicts']:.0f} %")
        if bar.startswith("VGG-16") and ours.passes > 1:
            parts.append(f"the plane is cut into {ours.passes:.0f} strips")
    else:
        named = ("unused PEs", "barriers", "halo and output")
        parts.append(", ".join(f"{key} {ours.losses()[key]:.0f}" for key in named))
        parts.append("note 4")
    return "; ".join(parts)


def sweep_rows(
    progress: Progress = silent,
    densities: tuple[float, ...] | None = None,
    modules: tuple[str, ...] = SWEPT,
) -> list[Row]:
    """Figures 8 and 12, for the densities asked (all by default), of some modules."""
    sweep = read_paper("scnn")["sweep"]
    layers = [one for one in sparse_layers("GoogLeNet") if one.bar in modules]
    rows: list[Row] = []
    energies: list[Row] = []
    for sparsity, name in LATENCIES.items():
        measured: dict[float, Tally] = {}
        for density, published in zip(sweep["densities"], sweep[sparsity], strict=True):
            if densities is not None and density not in densities:
                continue
            progress(f"{name} at density {density}")
            dense = density == 1  # then the three are one core
            core = SCNN_ISCA17 if dense else replace(SCNN_ISCA17, sparsity=sparsity)
            what = WhatIf(name=name, design=core)
            ours = total(side_by_side(what.tally, [at_density(one, density) for one in layers]))
            measured[density] = ours
            figure = quantity("latency", f"{name} at {density}", published)
            alone = switch("pairs alone", ours.bare / ours.dense, "archsim.papers.scnn.sweep_rows")
            reason = f"{_spent(ours)}; a sample (note 6)"
            rows.append(
                figure.row(
                    ours.cycles / ours.dense, reason, measured=[alone], missing=f"{ZEROS}; note 7"
                )
            )
        energies += sweep_energy_rows(name, measured)
    return [*rows, *energies]


def pe_rows(figures: Mapping[str, Figure], progress: Progress = silent) -> list[Row]:
    """GoogLeNet on 64 PEs and on 4."""
    layers = sparse_layers("GoogLeNet")
    progress("GoogLeNet on 4 PEs")
    many, few = (
        total(side_by_side(partial(timed, design), layers)) for design in (SCNN_ISCA17, SCNN_4PE)
    )
    alone = switch("pairs alone", few.bare / many.bare, "archsim.papers.scnn.pe_rows")
    remark = "16 × 16 lanes; vectors end with a list"
    return [
        figures["pes.speed"].row(
            few.cycles / many.cycles, f"4 PEs: {_spent(few)}", measured=[alone], missing=ZEROS
        ),
        figures["pes.utilization64"].row(
            many.utilization, "interpolated densities (note 3)", missing=DENSITIES
        ),
        figures["pes.utilization4"].row(few.utilization, remark, missing=DENSITIES),
    ]


__all__ = ["bars", "compare", "layer_figures", "layer_rows", "pe_rows", "sweep_rows", "would_be"]
