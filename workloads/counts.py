"""Numbers of things, as a sentence says them."""


def counted(number: int, noun: str) -> str:
    """ "1 chip", "2,000 chips"; of nouns whose plural is theirs with an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


__all__ = ["counted"]
