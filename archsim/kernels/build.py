# pyright: basic
"""From Python to an object file: numba types and lowers, LLVM optimises all parts at once."""

from __future__ import annotations

import atexit
import gc
from types import FunctionType, ModuleType
from typing import Any, cast

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import extending, types
from numba.core import cgutils, registry
from numba.np import numpy_support

from archsim.kernels.closure import Part, names_of, part_of
from archsim.kernels.lowering import KernelCompiler, linked, lowered_only
from archsim.kernels.native import LINKED, Package, host_machine, symbol_of
from archsim.kernels.references import without_counts
from archsim.kernels.spelling import ARRAY_WORDS, dtype_text, examples, words_of

_ALLOCATION = """
declare ptr @malloc(i64)

define ptr @{name}(i64 %size{align}) {{
  %wide = {wide}
  %room = add i64 %wide, 64
  %total = add i64 %size, %room
  %owner = call ptr @malloc(i64 %total)
  %none = icmp eq ptr %owner, null
  br i1 %none, label %failed, label %made
failed:
  ret ptr null
made:
  %address = ptrtoint ptr %owner to i64
  %last = add i64 %address, %room
  %mask = sub i64 0, %wide
  %first = and i64 %last, %mask
  %data = inttoptr i64 %first to ptr
  store i64 1, ptr %owner
  %place = getelementptr i64, ptr %owner, i64 3
  store ptr %data, ptr %place
  %length = getelementptr i64, ptr %owner, i64 4
  store i64 %size, ptr %length
  ret ptr %owner
}}
"""

_RELEASE = """
declare void @free(ptr)

define void @{name}(ptr %owner) {{
  call void @free(ptr %owner)
  ret void
}}
"""

_ALIGNED = _ALLOCATION.replace("{align}", ", i32 %align").replace(
    "{wide}", "zext i32 %align to i64"
)
_target: Any = registry.cpu_target

_UNALIGNED = _ALLOCATION.replace("{align}", "").replace("{wide}", "or i64 0, 16")

_RUNTIME = {
    "NRT_Allocate": """
declare ptr @malloc(i64)

define ptr @{name}(i64 %size) {{
  %made = call ptr @malloc(i64 %size)
  ret ptr %made
}}
""",
    "NRT_MemInfo_alloc": _UNALIGNED,
    "NRT_MemInfo_alloc_safe": _UNALIGNED,
    "NRT_MemInfo_alloc_aligned": _ALIGNED,
    "NRT_MemInfo_alloc_safe_aligned": _ALIGNED,
    "NRT_Free": _RELEASE,
    "NRT_MemInfo_call_dtor": _RELEASE,
}
"""The part of numba's runtime for arrays that lies outside the code it makes: an owner is the count
of references, two words for a destructor, the address of the elements, their bytes; the elements
begin, aligned, at least 64 bytes behind its beginning, and go with it."""

_dispatchers: dict[FunctionType, Any] = {}
"""numba's functions of the parts: shared by all entries of this process."""


def compile_entry(part: Part, args: tuple[Any, ...]) -> bytes:
    """A `Package`, as bytes, of a kernel for arguments like these."""
    _target.typing_context.refresh()
    _target.target_context.refresh()
    collecting = gc.isenabled()
    gc.disable()  # numba makes millions of objects that all stay
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)  # nor are they looked through when Python ends
    try:
        with lowered_only() as apart:
            dispatcher = _dispatcher(part)
            given = tuple(_type(value) for value in args)
            dispatcher.compile(given)
            result = dispatcher.overloads[given]
            text, name = linked(result.library, apart), result.fndesc.llvm_func_name
    finally:
        if collecting:
            _all_are_old()
            gc.enable()
    words = _words(result, given)
    symbol = f"archsim_{part.function.__name__}_{abs(hash((text, words))):x}"
    if part.linked is not None:
        symbol = _symbol(part)
    return Package(
        symbol=symbol,
        words=words,
        result=_spelled(result.signature.return_type),
        parts=_parts(part),
        code=_machine_code(without_counts(text, _borrowing(part)), name, symbol, part.short_loops),
    ).to_bytes()


def _all_are_old() -> None:
    """Objects made while none were collected are not looked through at the next allocation, for
    what of the young can go, but when all are."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _dispatcher(part: Part) -> Any:
    """numba's function of a part, of which all names stand for numba's functions of its parts."""
    function = part.function
    if function in _dispatchers:
        return _dispatchers[function]
    scope = dict(function.__globals__)
    copy = FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if part.merged:
        options["forceinline"] = True
    compiled: Any = numba.njit
    made = compiled(error_model="numpy", pipeline_class=KernelCompiler, **options)(copy)
    plain = made.get_call_template
    made.get_call_template = lambda args, kws: plain(tuple(map(_unliteral, args)), kws)
    _dispatchers[function] = made
    for name, attribute, value in names_of(function):
        inner = part_of(value)
        if inner is None:
            continue
        called = _dispatcher(inner) if inner.linked is None else _outside(inner)
        if attribute is None:
            scope[name] = called
        else:
            if scope[name] is function.__globals__[name]:
                module = ModuleType(scope[name].__name__)
                module.__dict__.update(vars(scope[name]))
                scope[name] = module
            setattr(scope[name], attribute, called)
    return made


_ANSWERS = {"int": types.int64, "float": types.float64, "bool": types.boolean, "none": types.none}


def _symbol(part: Part) -> str:
    """Of a linked entry."""
    declared, _ = cast("tuple[str, str]", part.linked)
    return symbol_of(f"{part.function.__module__}.{part.function.__qualname__}", part, declared)


def _outside(part: Part) -> Any:
    """What numba calls in place of a linked entry: a function that is there when code is loaded."""
    declared, answer = cast("tuple[str, str]", part.linked)
    signature = _ANSWERS[answer](*map(_type, examples(declared, part.function.__globals__)))
    symbol = _symbol(part)

    def called(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(sig.return_type, sig.args)
        function = cgutils.get_or_insert_function(builder.module, kind, symbol)
        status, found = convention.call_function(builder, function, sig.return_type, sig.args, args)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return found

    names = ", ".join(f"a{at}" for at in range(len(signature.args)))
    scope: dict[str, Any] = {"made": (signature, called)}
    exec(f"def outside(_context, {names}):\n    return made", scope)  # numba reads the names
    return extending.intrinsic(scope["outside"])


def _called(part: Part) -> dict[str, Any]:
    """numba's functions of a compiled part and of all that it calls, by name."""
    found: dict[str, Any] = {}
    waiting = [part]
    while waiting:
        one = waiting.pop()
        name = f"{one.function.__module__}.{one.function.__qualname__}"
        if name not in found:
            found[name] = _dispatchers[one.function]
            inner = (part_of(value) for _, _, value in names_of(one.function))
            waiting += [each for each in inner if each is not None and each.linked is None]
    return found


def _parts(part: Part) -> dict[str, int]:
    """Of a compiled part and all that it calls, for how many types of arguments each is there."""
    return {name: len(made.signatures) for name, made in _called(part).items()}


def _borrowing(part: Part) -> list[str]:
    """Those of its functions, by LLVM's name, that answer with no array."""
    made = (one for made in _called(part).values() for one in made.overloads.values())
    return [one.fndesc.llvm_func_name for one in made if not _has_array(one.signature.return_type)]


def _has_array(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return any(map(_has_array, _entries(kind)))
    return isinstance(kind, types.Array)


def _unliteral(kind: Any) -> Any:
    """A type that does not depend on the value: constants need no specialisation of their own."""
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.BaseNamedTuple):
        return types.Tuple([_unliteral(entry) for entry in _entries(kind)])
    return types.unliteral(kind)


def _entries(kind: Any) -> list[Any]:
    """The types of a tuple's entries."""
    return list(kind)


def _type(value: Any) -> Any:
    """numba's type of an argument; arrays in C order, and as if they could be written."""
    if isinstance(value, np.ndarray):
        return types.Array(numpy_support.from_dtype(value.dtype), value.ndim, "C")
    if isinstance(value, tuple):
        entries = [_type(entry) for entry in value]
        return types.BaseTuple.from_types(entries, type(value))
    if isinstance(value, np.generic):
        dtype: Any = value.dtype
        return numpy_support.from_dtype(dtype)
    plain = {bool: types.boolean, int: types.int64, float: types.float64}
    return plain[type(value)]


def _spelled(kind: Any) -> str:
    """An answer's type, as `archsim.kernels.spelling` says it.  Raises `TypeError`."""
    plain = {types.none: "none", types.int64: "int", types.float64: "float", types.boolean: "bool"}
    kind = types.unliteral(kind)
    if kind in plain:
        return plain[kind]
    if isinstance(kind, types.Array):
        return f"{dtype_text(numpy_support.as_dtype(kind.dtype))}.{kind.ndim}"
    if isinstance(kind, types.BaseTuple):
        spelled = [_spelled(entry) for entry in _entries(kind)]
        if "bool" not in spelled:
            return f"({','.join(spelled)})"
    raise TypeError(f"a kernel cannot answer with {kind}")


def _words(result: Any, given: tuple[Any, ...]) -> str:
    """Of the arguments, by numba's own account; checked against ours."""
    convention = _target.target_context.call_conv
    function = convention.get_function_type(result.signature.return_type, given)
    kinds = {"i64": "q", "i32": "i", "i8": "b", "double": "d"}
    theirs = "".join(
        "q" if str(kind).endswith(("*", "ptr")) else kinds.get(str(kind), "?")
        for kind in function.args[2:]
    )
    ours = "".join(map(_argument_words, given))
    if theirs != ours:
        raise TypeError(f"numba takes arguments otherwise than expected: {theirs}, not {ours}")
    size = _target.target_context.get_abi_sizeof(
        convention.get_return_type(result.signature.return_type).pointee
    )
    expected = len(words_of(_spelled(result.signature.return_type)))
    if result.signature.return_type not in (types.none, types.boolean) and size != 8 * expected:
        raise TypeError(f"numba answers in {size} bytes, not {8 * expected}")
    return ours


def _argument_words(kind: Any) -> str:
    if isinstance(kind, types.Array):
        return "q" * (ARRAY_WORDS + 2 * kind.ndim)
    if isinstance(kind, types.BaseTuple):
        return "".join(map(_argument_words, _entries(kind)))
    return {types.boolean: "b", types.float64: "d"}.get(kind, "q")


def _machine_code(text: str, entry: str, symbol: str, short_loops: bool) -> bytes:
    """The object file of a module, of which one function is seen from outside."""
    machine = host_machine()
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name == entry else "internal"
    module.get_function(entry).name = symbol
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization = not short_loops
    options.slp_vectorization = short_loops
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.add_refprune_pass()
    passes.run(module, builder)
    for name in [one.name for one in module.functions if one.is_declaration]:
        if name in _RUNTIME:
            module.link_in(llvm.parse_assembly(_RUNTIME[name].format(name=name)))
            module.get_function(name).linkage = "internal"
    for function in module.functions:
        if function.is_declaration:
            _require_known(function.name)
    module.verify()
    return machine.emit_object(module)


def _require_known(name: str) -> None:
    """Raises `TypeError` for a function that is nowhere to be found when the code is loaded."""
    of_numba = name.startswith(("NRT_", "nrt_", "numba"))
    ours = name.startswith(("llvm.", LINKED))
    if not ours and (of_numba or not llvm.address_of_symbol(name)):
        raise TypeError(f"compiled code calls {name}, which is not there without numba")
