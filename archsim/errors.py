"""The error a user sees: what was wrong, where, and what would be right."""


class InputError(ValueError):
    """Bad input.  The command line prints it as one line and exits with 2."""


def require(condition: bool, message: str) -> None:
    """Raise `InputError(message)` unless the condition holds."""
    if not condition:
        raise InputError(message)


def require_positive(**values: int) -> None:
    """Refuse values below one, with the grammar "rows must be positive, not 0"."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputError(f"{name} must be a whole number, not {value!r}")
        require(value > 0, f"{name} must be positive, not {value}")
