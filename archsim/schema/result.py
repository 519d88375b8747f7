"""The schema of a saved result: what `archsim run --json` prints and `-o DIR` writes."""

from __future__ import annotations

from archsim.schema.words import (
    Schema,
    anything,
    array,
    by_name,
    count,
    document,
    number,
    or_null,
    record,
    text,
    yes_or_no,
)

VERSION_FIELD = "schema_version"

SCHEMA_VERSION = 1
"""Raised when a field goes, changes its meaning, or is asked for where it was not: a reader of
before would be wrong.  A field more does not raise it."""

WHERE: dict[str, Schema] = {
    "computing": count("cycles", "moving words enter the array"),
    "filling": count("cycles", "waiting for stationary words to be shifted in"),
    "draining": count("cycles", "behind the last moving word: array, accumulators, output stage"),
    "wait_weight": count("cycles", "waiting for a tile of weights, at one word a cycle"),
    "wait_ifmap": count("cycles", "waiting for a tile of the ifmap, at one word a cycle"),
    "wait_output": count("cycles", "waiting for accumulators that the output stage reads"),
    "conflict": count("cycles", "of a sparse machine: a bank of accumulators takes another sum"),
    "barrier": count("cycles", "of a sparse machine: PEs wait for each other"),
    "control": count("cycles", "taking a tile's command; of a sparse machine, empty blocks"),
    "memory": count(
        "cycles", "more than all of these, as the off-chip memory is slower than ports"
    ),
}

PORTS = {
    "ifmap": "what the layer takes in",
    "weight": "weights",
    "bias": "biases",
    "ofmap": "what the layer gives",
}

TILING = record(
    "Size of a tile and order of the loops; null for vector work and on machines without tiles",
    {
        "pixel_rows": count("pixels", "rows of the ofmap in a tile"),
        "pixel_columns": count("pixels", "columns of the ofmap in a tile"),
        "filters": count("filters", "filters in a tile"),
        "channels": count("channels", "channels of the ifmap in a tile"),
        "order": text("which loop is outside", ("pixels_outer", "filters_outer")),
        "images": count("images", "images in a tile"),
        "groups": count("groups", "groups side by side on the array, as one block"),
    },
)

OF_FILES: dict[str, Schema] = {
    "ofmap_values": count("values", "of a quantised file: values of the ofmap"),
    "differing_values": or_null(
        count("values", "of them, those that the core rounds otherwise; null where it gives sums")
    ),
    "unlike_runtime_values": or_null(
        count("values", "of them, those that ONNX Runtime makes otherwise; null without its run")
    ),
    "core_lacks": text("what the file needs and the core has not; empty for nothing"),
}

LAYER = record(
    "One layer",
    {
        "name": text("its name, the only one of that name"),
        "kind": text("conv2d, matmul, or the operator of vector work"),
        "macs": count("MACs", "multiply-accumulates of the layer's mathematics"),
        "cycles": count("cycles", "from its command to its last word; 0 for vector work"),
        "serial_cycles": count("cycles", "of the array alone, if no fold overlapped another"),
        "stall_cycles": count("cycles", "without a moving word: cycles less those of computing"),
        "utilization": number(
            "1", "useful MACs (of a sparse machine, products) over those possible"
        ),
        **WHERE,
        **{
            f"{port}_bytes": count("bytes", f"{what}, across the port")
            for port, what in PORTS.items()
        },
        "tiles": count("tiles", "tiles (of a sparse machine, passes) that it was cut into"),
        "folds": count("folds", "sets of stationary operands"),
        "products": count("MACs", "multiplications that were made"),
        "tiling": or_null(TILING),
        "vector_operations": count("operations", "elementary ones beside the array, not timed"),
        "operands": text("how values became the machine's numbers; none without values"),
        "weight_origin": text("given, drawn, file, input, or none; unknown in results of before"),
        "ifmap_origin": text("given, drawn, file, input, or none; unknown in results of before"),
        "actions": by_name("Action counts", count("events", "how often the action happened")),
    },
    {
        **OF_FILES,
        "per_pe": by_name(
            "Of a sparse machine: load, conflict and idle, rows × columns of PEs",
            array("a row of PEs", array("the PEs of a row", count("cycles", "of one PE"))),
        ),
    },
    patterns={
        "^[a-z]+_stored_bits$": count(
            "bits", "what the operand's tiles take of a compressed memory"
        ),
        "^[a-z]+_plain_bits$": count("bits", "what they would take uncompressed"),
    },
)

PRICE = record(
    "One figure that was used",
    {
        "component": text("which part of the design"),
        "kind": text("what kind of part, with its sizes"),
        "count": count("components", "how many of them"),
        "what": text("an event, leakage, or area"),
        "value": or_null(
            number("unit", "the figure, in the unit beside; null where none is known")
        ),
        "unit": text("pJ or MAC an event, mW of leakage, µm² of area"),
        "source": text("where it is from; none where no source has it"),
        "how": text("how it was derived from what is printed, or why there is none"),
    },
)

SOURCES = by_name("Sources by kind of component", text("a source, or why there is none"))

TECHNOLOGY = record(
    "Where prices are from",
    {
        "name": text("its name"),
        "title": text("what it is, in a line"),
        "node_nm": number("nm", "process node"),
        "voltage_v": number("V", "supply"),
        "unit": text("of energies: pJ, or MAC where they are relative"),
        "sram_relative_voltage": number("1", "supply of SRAMs over their minimum"),
    },
    {"energy": SOURCES, "area": SOURCES, "leakage": SOURCES},
)

ENERGY = record(
    "What the layers that take cycles cost; null where nothing could be priced",
    {
        "technology": text("name of the technology"),
        "unit": text("of every energy here: pJ, or MAC where they are relative"),
        "total": number("unit", "dynamic and static"),
        "by_component": by_name("Dynamic by component, and leakage", number("unit", "energy")),
        "by_group": by_name(
            "Dynamic by group of components, and leakage", number("unit", "energy")
        ),
        "edp": number("unit · s", "energy-delay product"),
        "power_w": or_null(number("W", "mean power, off-chip memory included; null if relative")),
        "layers": by_name(
            "Of every layer", by_name("By component, and leakage", number("unit", "energy"))
        ),
        "missing": array("What no source has, left out of the sums", text("what, and why")),
        "prices": array("Every figure that was used", PRICE),
    },
    {
        "bounded": array(
            "Layers whose accesses of compressed memories are upper bounds, for want of values",
            text("name of a layer"),
        ),
        "not_injected": text(
            "with SRAMs below their minimum: that no bit errors are in the values"
        ),
    },
)

AREA = record(
    "What the design takes; null where the technology has no areas",
    {
        "total_um2": number("µm²", "all components with a source"),
        "by_component": by_name("By component", number("µm²", "area")),
        "by_group": by_name("By group of components", number("µm²", "area")),
    },
)

KV_CACHE = record(
    "Of a language model: the keys and values that it keeps, once the network has run",
    {
        "elements": count("elements", "of all blocks and sequences"),
        "appended_elements": count("elements", "of them, those that the network adds"),
        "footprint_bytes": count("bytes", "that they take, in the machine's own width"),
        "appended_bytes": count("bytes", "of them, those that are written"),
        "read_bytes": count("bytes", "across the weight port, of the layers that read the cache"),
    },
)

_PASS = record(
    "One pass, over all its layers",
    {
        "cycles": count("cycles", "of its matrix layers"),
        "macs": count("MACs", "of their mathematics"),
        "products": count("MACs", "multiplications that were made"),
        "moved_bytes": count("bytes", "across all ports"),
        "vector_operations": count("operations", "elementary ones beside the array, not timed"),
    },
)

TRAINING = record(
    "Of a training step: each pass, and room off the chip, in the machine's own width",
    {
        "passes": by_name("FP, BP, WG (gradients of weights), update", _PASS),
        "footprint_bytes": count("bytes", "of all that follow"),
        "weight_bytes": count("bytes", "of all that is trained"),
        "gradient_bytes": count("bytes", "of its gradients"),
        "optimiser_bytes": count("bytes", "that the optimiser keeps"),
        "kept_bytes": count("bytes", "that the forward pass keeps for the others"),
    },
)

RESULT = document(
    "A saved result of archsim",
    record(
        "A network on a design",
        {
            VERSION_FIELD: count("1", f"of this schema: {SCHEMA_VERSION}"),
            "archsim": text("version of the archsim that simulated"),
            "design_name": text("name of the design"),
            "design": anything("The complete design, as its TOML has it"),
            "network": text("name of the network"),
            "network_source": text("where its shapes are from"),
            "skipped": array("Operators left out on demand", text("which, and why")),
            "seed": or_null(count("1", "of drawn operands; null without")),
            "cycles": count("cycles", "of all layers"),
            "serial_cycles": count("cycles", "of all layers, if no fold overlapped another"),
            "seconds": number("s", "of all layers, at the design's clock"),
            "macs": count("MACs", "of all layers"),
            "utilization": number("1", "useful MACs (or products) over those possible"),
            "where": record("Where the cycles went, by cause; they sum to cycles", WHERE),
            "bytes_moved": record(
                "Of all layers, by port",
                {port: count("bytes", what) for port, what in PORTS.items()},
            ),
            "actions": by_name("Action counts of all layers", count("events", "how often")),
            "layers": array("In the order of the network", LAYER),
        },
        {
            "timed_by_values": yes_or_no(
                "whether cycles depend on the operands' values, which `weight_origin` and "
                "`ifmap_origin` of each layer may say to be drawn"
            ),
            "options": anything(
                "What was chosen of the machine for this run, by the names that `simulate` has; "
                "left out where nothing was"
            ),
            "kv_cache": KV_CACHE,
            "training": TRAINING,
            "technology": or_null(TECHNOLOGY),
            "energy": or_null(ENERGY),
            "area": or_null(AREA),
            "why_no_energy": text("why nothing could be priced; empty where nothing was asked for"),
        },
    ),
)
