"""The schemas of what `archsim compare --json` and `archsim paper NAME --json` print."""

from __future__ import annotations

from archsim.schema.words import (
    any_number,
    array,
    count,
    document,
    number,
    or_null,
    record,
    text,
    yes_or_no,
)

VALUES = array("One for each result, null where it has none", or_null(any_number("unit", "value")))

RATIOS = array("Each value over the baseline's", or_null(any_number("1", "ratio, or null")))

FIGURE = record(
    "One figure of every result",
    {
        "group": text("total, or what it is a part of"),
        "figure": text("its name"),
        "unit": text("of its values"),
        "values": VALUES,
        "ratios": RATIOS,
    },
)

CHANGE = record(
    "A parameter in which the results differ",
    {
        "key": text("its name, dots reaching into nested ones"),
        "values": {"description": "One for each result, null where it has none", "type": "array"},
    },
)

COMPARISON = document(
    "Saved results of archsim side by side",
    record(
        "Two results or more, the baseline first",
        {
            "baseline": text("label of the first"),
            "results": array(
                "In the order given",
                record(
                    "A result",
                    {
                        "label": text("A, B, C …"),
                        "path": text("where it was read"),
                        "archsim": text("version of the archsim that simulated"),
                        "design_name": text("name of the design"),
                        "network": text("name of the network"),
                        "seed": or_null(count("1", "of drawn operands; null without")),
                        "technology": text("its name; empty where none was chosen"),
                    },
                ),
            ),
            "notes": array("What makes the results hard to compare", text("a sentence")),
            "design_changes": array("Of the designs", CHANGE),
            "technology_changes": array("Of the technologies", CHANGE),
            "speedups": array(
                "The baseline's seconds over each result's",
                or_null(number("1", "above 1 it is faster; null where the layers differ")),
            ),
            "figures": array("Of the whole networks", FIGURE),
            "layers": array(
                "Layers of one name and size",
                record(
                    "A layer",
                    {
                        "name": text("its name"),
                        "kind": text("conv2d, matmul, or the operator of vector work"),
                        "macs": count("MACs", "multiply-accumulates"),
                        "vector_operations": count("operations", "beside the array"),
                        "figures": array("Of the layer", FIGURE),
                    },
                ),
            ),
            "largest_movers": array(
                "Layers whose cycles differ most, the largest first", text("name of a layer")
            ),
        },
    ),
)

MEASURED = record(
    "What shows why ours differs",
    {
        "kind": text(
            "what was done: a cause taken away, or something counted", ("switch", "count")
        ),
        "what": text("the cause, or what was counted"),
        "value": any_number("unit", "the figure without the cause, or the count"),
        "unit": text("of a count; empty where it is the row's"),
        "how": text("the call, command or field that it is from"),
    },
    {"closed": any_number("1", "part of the way to the paper's figure; of a switch")},
)

ROW = record(
    "A published figure, and ours",
    {
        "figure": text("what it is"),
        "paper": or_null(number("unit", "published value; null where none is printed")),
        "ours": any_number("unit", "our value"),
        "unit": text("of paper, ours and tolerance"),
        "tolerance": or_null(number("unit", "how far ours may be off; null where none is printed")),
        "within": {**or_null(yes_or_no("whether ours is within it; null where none is printed"))},
        "state": or_null(
            text("reproduced, explained or not modelled; null where nothing is printed")
        ),
        "reason": text("a remark"),
        "measured": array("Why ours is outside the tolerance", MEASURED),
        "missing": text("what of the figure our model lacks, where nothing measured explains it"),
        "source": text("where in the paper, and how it was derived"),
        "tolerance_reason": text("why that much"),
        "wide_reason": text("why more than a quarter of the figure, where it is"),
    },
)

PAPER = document(
    "A paper's figures beside archsim's",
    record(
        "A table",
        {
            "paper": text("its name here"),
            "title": text("its title"),
            "notes": array("What many rows have in common", text("a sentence")),
            "states": record(
                "Rows in each state",
                {
                    "reproduced": count("rows", "ours is within the tolerance"),
                    "explained": count("rows", "it is not, and something measured shows why"),
                    "not modelled": count("rows", "what it counts is not in the model"),
                },
            ),
            "rows": array("In the order of the paper", ROW),
        },
        {
            "layers": {
                "description": "Of boveda: every tensor in every number format",
                "type": "array",
            },
        },
    ),
)
