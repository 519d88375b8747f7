"""The conformance suite that every design passes: subclass it in a test file.

    class TestMine(DesignConformance):
        designs = (Mine(rows=3), Mine(rows=8, columns=5))

        def random_design(self, draw):
            return Mine(rows=draw.whole(1, 5), ...)

Each test compares every transfer on every port, cycle for cycle and bit for bit, and every action
count, under random stalls on every port.
"""

from archsim.machine.design import Design
from rtl.cases import LONGEST_WORDS, Draw, random_case
from rtl.conformance import Verdict, check
from rtl.simulators import Simulator, runner


def assert_equal(verdict: Verdict) -> None:
    """Fail with the case and the first difference of each port."""
    assert verdict.equal, f"model and RTL differ: {verdict.record()}"
    assert verdict.transfers > 0


def check_random_cases(
    design: Design,
    simulator: Simulator,
    *,
    seed: int,
    cases: int,
    longest_words: int = LONGEST_WORDS,
) -> None:
    """So many random cases of a design, of at most so many words at all ports, on one build of it.

    Raises `AssertionError` with the first case that differs.
    """
    run = runner(design, simulator)
    for number in range(cases):
        assert_equal(check(random_case(seed, number, design, longest_words=longest_words), run))


class DesignConformance:
    """Model against RTL in Amaranth's simulator, and through the emitted Verilog."""

    designs: tuple[Design, ...] = ()
    """The designs whose Verilog is emitted and run: few, since each is compiled."""

    amaranth_cases = 36
    amaranth_words = LONGEST_WORDS
    """At all ports of one of them."""
    verilator_cases = 60
    cocotb_cases = 3
    seed = 1

    def random_design(self, draw: Draw) -> Design:
        """A small design for Amaranth's simulator."""
        raise NotImplementedError

    def test_amaranth_on_random_designs(self) -> None:
        for number in range(self.amaranth_cases):
            design = self.random_design(Draw(self.seed, number))
            self.check_one(design, "amaranth", number)

    def check_one(self, design: Design, simulator: Simulator, number: int) -> None:
        """One random case of a design; a design too small for any is passed over."""
        case = random_case(self.seed, number, design, longest_words=self.amaranth_words)
        assert_equal(check(case, runner(design, simulator)))

    def test_verilator_on_many_cases(self) -> None:
        for design in self.designs:
            check_random_cases(design, "verilator", seed=self.seed, cases=self.verilator_cases)

    def test_cocotb_on_the_emitted_file(self) -> None:
        check_random_cases(self.designs[0], "cocotb", seed=self.seed, cases=self.cocotb_cases)
