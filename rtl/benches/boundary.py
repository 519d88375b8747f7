"""Read a core's boundary, its streams and probes, off the component's signature."""

from amaranth.hdl import Shape
from amaranth.lib import stream, wiring

from rtl.benches.bench import IDLE, Bench, StreamPort

__all__ = ["check_boundary", "ports_of", "probes_of"]


def ports_of(component: wiring.Component) -> tuple[StreamPort, ...]:
    """The component's streams, in the order in which it declares them.

    Raises `ValueError` for a member that is neither a stream nor a plain output (but for inputs of
    settings, which benches leave at 0), for an array of members, and for a stream without
    back-pressure.
    """
    ports = []
    for name, member in component.signature.members.items():
        if member.dimensions:
            raise ValueError(f"{name} must be a single member, not an array")
        if member.is_port:
            if member.flow is not wiring.Out and not name.startswith(IDLE):
                raise ValueError(f"{name} must be a stream or an output, not a plain input")
            continue
        signature = member.signature
        if not isinstance(signature, stream.Signature):
            raise ValueError(f"{name} must be a stream, not {signature!r}")
        if signature.always_ready or signature.always_valid:
            raise ValueError(f"{name} must have both valid and ready")
        bits = Shape.cast(signature.members["payload"].shape).width
        direction = "i" if member.flow is wiring.In else "o"
        ports.append(StreamPort(name=name, direction=direction, bits=bits))
    return tuple(ports)


def probes_of(component: wiring.Component) -> tuple[tuple[str, int], ...]:
    """The component's plain outputs as (name, bits), in the order of declaration."""
    return tuple(
        (name, Shape.cast(member.shape).width)
        for name, member in component.signature.members.items()
        if member.is_port and member.flow is wiring.Out
    )


def check_boundary(
    bench: Bench, ports: tuple[StreamPort, ...], probes: tuple[tuple[str, int], ...]
) -> None:
    """Raise `ValueError` unless `bench` drives all of a core's `ports` and reads its `probes`.

    A bench may leave probes out.
    """
    wanted = {port.name: port for port in bench.ports}
    found = {port.name: port for port in ports}
    for name in sorted(set(wanted) | set(found)):
        if wanted.get(name) != found.get(name):
            raise ValueError(f"port {name}: bench has {wanted.get(name)}, core {found.get(name)}")
    for name, bits in bench.probes:
        if dict(probes).get(name) != bits:
            raise ValueError(f"probe {name}: bench has {bits} bits, core {dict(probes).get(name)}")
