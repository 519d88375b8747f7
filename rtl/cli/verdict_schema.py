"""The schema of what `archsim verify --json` prints."""

from archsim.schema.words import anything, array, by_name, count, document, record, text

VERDICT = document(
    "Whether a design's RTL equals its model",
    record(
        "What was compared, and what differed",
        {
            "design": text("its name"),
            "simulator": text("what ran the RTL", ("amaranth", "verilator", "cocotb")),
            "seed": count("1", "of the cases"),
            "cases": count("cases", "random layers that ran on both"),
            "transfers": count("transfers", "words that were compared"),
            "cycles": count("cycles", "that the RTL ran"),
            "cycle_differences": count("transfers", "in another cycle"),
            "value_differences": count("transfers", "of another value"),
            "action_differences": count("actions", "of another count"),
            "coverage": record(
                "Situations in which faults hide, and which of them the cases were in",
                {
                    "bins": count("1", "situations that the design's kind names"),
                    "hit": count("1", "in which some case was"),
                    "missing": array("The others", text("its name")),
                    "cases": by_name("Of each situation", count("cases", "that were in it")),
                },
            ),
            "differences": array(
                "Cases that differ, empty where all are equal",
                anything("A case: its label and what it is made of, its ports, how to repeat it"),
            ),
        },
        {
            "waves": array("With --waves", text("a file that was written")),
            "smallest": anything("The smallest case found that differs, as one of `differences`"),
        },
    ),
)
