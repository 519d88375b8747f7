"""Whether a number is one more than another, without a chain of carries."""

from amaranth.hdl import Cat, Value


def one_more(more: Value, number: Value) -> Value:
    """more = number + 1, of as many bits, without a chain of carries.

    A carry into a bit is right if the bits below are, and then the two below it tell of it.
    """
    carry, right = Value.cast(1), []
    for n in range(len(number)):
        right.append((more[n] ^ number[n]) == carry)
        carry = number[n] & ~more[n]
    return Cat(right, ~carry).all()
