"""The bench's description refuses what does not fit together, and outcomes tell differences."""

import dataclasses
import pickle

import numpy as np
import pytest

from rtl.benches.bench import Bench, Crossing, Outcome, ProtocolError, Stimulus, StreamPort

I8 = StreamPort(name="i", direction="i", bits=8)
O12 = StreamPort(name="o", direction="o", bits=12)
WORDS = np.array([[1], [2]], np.uint8)


def bench(**more) -> Bench:
    fields = {
        "ports": (I8, O12),
        "probes": (("count", 64),),
        "stimuli": {"i": Stimulus.offer(WORDS), "o": Stimulus.accept(2)},
        "max_cycles": 10,
    }
    return Bench(**{**fields, **more})


def outcome(**more) -> Outcome:
    crossing = Crossing(cycles=np.array([3, 5]), words=WORDS)
    fields = {"crossings": {"i": crossing}, "probes": {"n": 1}, "cycles": 9, "timed_out": False}
    return Outcome(**{**fields, **more})


def test_a_scalar_gap_is_every_words():
    stimulus = Stimulus.offer(WORDS, gaps=3)
    assert stimulus.gaps.tolist() == [3, 3]
    assert stimulus.earliest.tolist() == [0, 0]
    assert len(stimulus) == 2


def test_listed_words_are_those_of_all_ports():
    assert bench().listed_words == 4


@pytest.mark.parametrize(("bits", "size"), [(1, 1), (8, 1), (9, 2), (2048, 256)])
def test_words_are_whole_bytes(bits, size):
    assert StreamPort(name="x", direction="i", bits=bits).word_bytes == size


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"stimuli": {"i": Stimulus.offer(WORDS)}}, "stimuli must be for the ports"),
        ({"probes": (("count", 65),)}, "bits of probe count must be 1 to 64, not 65"),
        ({"probes": (("i", 3),)}, "names .* must differ"),
        ({"max_cycles": 0}, "max_cycles must be positive, not 0"),
        ({"tail_cycles": -1}, "tail_cycles must not be negative, not -1"),
        ({"stimuli": {"i": Stimulus.accept(2), "o": Stimulus.accept(2)}}, "i needs words"),
        ({"stimuli": {"i": Stimulus.offer(WORDS), "o": Stimulus.offer(WORDS)}}, "o must not have"),
        ({"ports": (dataclasses.replace(I8, bits=9), O12)}, "words of i must be 2 bytes, not 1"),
        ({"ports": (dataclasses.replace(I8, bits=1), O12)}, "words of i must have 1 bits"),
    ],
)
def test_what_does_not_fit_is_refused(more, message):
    with pytest.raises(ValueError, match=message):
        bench(**more)


@pytest.mark.parametrize(
    ("words", "gaps", "earliest", "message"),
    [
        (None, [0, -1], [0, 0], "gaps must not be negative, not -1"),
        (None, [0, 0], [0], "equally long, not 2 and 1"),
        (WORDS, [0], [0], "words must be 1, not 2"),
    ],
)
def test_a_stimulus_of_odd_lengths_is_refused(words, gaps, earliest, message):
    with pytest.raises(ValueError, match=message):
        Stimulus(words=words, gaps=np.array(gaps), earliest=np.array(earliest))


def test_ports_have_a_direction_and_bits():
    with pytest.raises(ValueError, match="bits must be positive, not 0"):
        StreamPort(name="x", direction="i", bits=0)
    with pytest.raises(ValueError, match="direction must be 'i' or 'o', not 'in'"):
        StreamPort(name="x", direction="in", bits=1)  # pyright: ignore[reportArgumentType]


def test_equal_outcomes_have_no_differences():
    assert outcome().differences(outcome()) == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"cycles": 8}, "cycles: 9 against 8"),
        ({"timed_out": True}, "timed_out: False against True"),
        ({"probes": {"n": 2}}, "probes: {'n': 1} against {'n': 2}"),
        ({"crossings": {}}, "ports: ['i'] against []"),
        (
            {"crossings": {"i": Crossing(cycles=np.array([3]), words=WORDS[:1])}},
            "i: 2 words against 1",
        ),
        (
            {"crossings": {"i": Crossing(cycles=np.array([3, 6]), words=WORDS)}},
            "i: word 1 at cycle 5 02 against cycle 6 02",
        ),
        (
            {"crossings": {"i": Crossing(cycles=np.array([3, 5]), words=WORDS[::-1])}},
            "i: word 0 at cycle 3 01 against cycle 3 02",
        ),
    ],
)
def test_a_difference_is_told(more, message):
    assert outcome().differences(outcome(**more)) == [message]


def test_a_protocol_error_survives_pickling():
    error = pickle.loads(pickle.dumps(ProtocolError("ofmap", 17)))
    assert (error.port, error.cycle) == ("ofmap", 17)
    assert "ofmap" in str(error)
