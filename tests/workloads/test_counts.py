"""Numbers of things in sentences."""

from workloads.counts import counted


def test_one_has_no_plural() -> None:
    assert counted(1, "chip") == "1 chip"
    assert counted(0, "cycle difference") == "0 cycle differences"
    assert counted(2000, "test picture") == "2,000 test pictures"
