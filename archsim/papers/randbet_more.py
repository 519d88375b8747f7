"""What stands beside the paper's MNIST table: energy, profiled chips, a fixed pattern, steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from archsim.codecs.robust_quantization import steps
from archsim.memories.faulty.laws import Columns, Independent
from archsim.papers.evidence import Measured, count
from archsim.papers.figures import Row, load_figures, read_paper, unpublished
from archsim.robust.chips import Chips
from archsim.robust.measured import Measurements
from archsim.robust.model import RobustModel, model_of, shipped
from energy_models.voltage import LOWEST, bit_error_rate, sram_energy_factor

PATTERN = "mnist-int8-pattern-5"

STEP_RATES = (0.0005, 0.001, 0.005, 0.01)

PROFILED_MODELS = {
    "RQuant": "mnist-int8-rquant",
    "Clipping 0.1": "mnist-int8-clipping",
    "RandBET 0.1, 1 %": "mnist-int8-randbet-1",
}

ROW_BITS = 128
"""Columns of the profiled arrays."""


def saved_percent(rate: float) -> float:
    """Of the energy of an access at V_min, at the voltage where so many bits are wrong."""
    low, high = LOWEST, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bit_error_rate(middle) > rate else (low, middle)
    return 100 * (1 - sram_energy_factor(high))


def energy_rows(
    models: Mapping[str, RobustModel], measured: Measurements, rates: Sequence[float]
) -> list[Row]:
    """Saved where the best model of so many bits loses so much accuracy at most."""
    figures = load_figures("randbet")
    found: list[Row] = []
    for key, bits, loss in (("saved.1", 8, 1.0), ("saved.2.5", 4, 2.5)):
        some = [one for one in models.values() if one.scheme.bits == bits]
        clean = min(fmean(measured.errors(one, Chips(), 0.0)) for one in some)
        borne = [
            rate
            for rate in rates
            if min(fmean(measured.errors(one, Chips(), rate)) for one in some) <= clean + loss
        ]
        best = max(borne, default=0.0)
        found.append(
            figures[key].row(
                saved_percent(best),
                f"at {100 * best:g} % of bits wrong, the highest such rate of this table",
                measured=[_papers_mnist(bits, loss)],
            )
        )
    return found


def _papers_mnist(bits: int, loss: float) -> Measured:
    """The same of the paper's own MNIST table: the figure is of CIFAR-10, which bears less."""
    some = [
        one
        for one in read_paper("randbet")["mnist"]
        if one["key"].startswith(f"{bits} bit") and "robust" in one
    ]
    clean = min(one["clean"] for one in some)
    borne = [
        float(rate)
        for one in some
        for rate, error in one["robust"].items()
        if error <= clean + loss
    ]
    return count(
        f"saved on MNIST by the paper's own table, at {max(borne):g} %, where the figure is "
        "CIFAR-10's",
        saved_percent(max(borne) / 100),
        "%",
        "papers/randbet.toml with energy_models.voltage",
    )


def profiled_rows(models: Mapping[str, RobustModel], measured: Measurements) -> Iterator[Row]:
    """Our models on chips drawn by the laws fitted to profiled ones; the paper's are CIFAR's."""
    for name, one in read_paper("randbet")["profiled"].items():
        chips = profiled_chips(one)
        law = "columns" if one["columns"] else "independent"
        for ours, model in PROFILED_MODELS.items():
            for place, percent in enumerate(one["rates"]):
                errors = measured.errors(models[model], chips, percent / 100)
                theirs = ", ".join(f"{key} {row[place]}" for key, row in one["robust"].items())
                figure = unpublished(
                    key=f"{name}.{ours}.{percent}",
                    group=f"chips like profiled {name} ({law})",
                    figure=f"{ours}: robust error at {percent:g} %",
                    unit="%",
                    source="supplementary material; CIFAR-10",
                )
                yield figure.row(fmean(errors), f"the paper's, on CIFAR-10: {theirs}")


def profiled_chips(one: Mapping[str, Any]) -> Chips:
    """Chips of a profiled kind: the shares of cells that read 1 and 0, and how they lie."""
    share = float(one["zero_to_one"])
    return Chips(
        zero_to_one=share,
        one_to_zero=1 - share,
        columns=ROW_BITS if one["columns"] else None,
        law=Columns() if one["columns"] else Independent(),
    )


def pattern_rows(measured: Measurements) -> Iterator[Row]:
    """Trained with the errors of one chip: on it, at its rate and a lower one; on others."""
    model = shipped(PATTERN)
    recipe = model.made["recipe"]
    rate, chip = float(recipe["rate"]), int(recipe["chip"])
    places = {
        f"on its own chip at {100 * rate:g} %": measured.errors(model, Chips(), rate, only=chip),
        "on its own chip at 1 %": measured.errors(model, Chips(), 0.01, only=chip),
        "on other chips at 1 %": measured.errors(model, Chips(), 0.01),
        f"on other chips at {100 * rate:g} %": measured.errors(model, Chips(), rate),
    }
    for what, errors in places.items():
        figure = unpublished(
            key=f"pattern.{what}",
            group=f"trained with the fixed errors of one chip at {100 * rate:g} %, 8 bit, clip 0.1",
            figure=f"robust error {what}",
            unit="%",
            source="section 5; CIFAR-10",
        )
        yield figure.row(
            fmean(errors),
            "the paper's, on CIFAR-10 at 2.5 %: on its own pattern 7.87, on random ones 61.59"
            if what == f"on other chips at {100 * rate:g} %"
            else "",
        )


def step_rows(models: Mapping[str, RobustModel], measured: Measurements) -> Iterator[Row]:
    """The weights of our RQuant model, quantised afterwards by every step."""
    model = models["mnist-int8-rquant"]
    weights = model.values()
    for name, scheme in steps(8).items():
        other = model_of(model.network, scheme, weights, {})
        for rate in STEP_RATES:
            figure = unpublished(
                key=f"steps.{name}.{rate}",
                group="steps of quantisation, 8 bit, of one network's weights",
                figure=f"{name}: robust error at {100 * rate:g} %",
                unit="%",
                source="section 4.1; CIFAR-10, each trained by itself",
            )
            yield figure.row(fmean(measured.errors(other, Chips(), rate)))


__all__ = [
    "PATTERN",
    "energy_rows",
    "pattern_rows",
    "profiled_chips",
    "profiled_rows",
    "saved_percent",
    "step_rows",
]
