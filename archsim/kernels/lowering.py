# pyright: basic
"""numba's way from Python to LLVM's language, without what kernels never need.

numba would optimise and load every part by itself, and again inside each of its callers; nothing
here runs a part by itself.  Where a later numba no longer has what is replaced for that, it is not
replaced, and compilation takes longer.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from types import CodeType
from typing import Any
from unittest import mock

import numpy as np
from numba import types
from numba.core import (
    base,
    codegen,
    compiler,
    compiler_machinery,
    cpu,
    errors,
    event,
    ir,
    typed_passes,
)
from numba.core.runtime import context as runtime
from numba.core.typing import context as typing_context

_NEVER = (
    "WithLifting",
    "InlineInlinables",
    "LiteralUnroll",
    "AnnotateTypes",
    "DumpParforDiagnostics",
)
"""Passes for what no kernel has: blocks of `with`, inlining of Python by numba, loops over tuples
of different types; and for what nobody reads."""

_CLOSURES = ("InlineClosureLikes", "MakeFunctionToJitFunction")
"""Passes for functions and comprehensions within a function."""


class KernelCompiler(compiler.CompilerBase):
    """numba's passes, but for those that leave a kernel as it is."""

    def define_pipelines(self) -> list[Any]:
        """One, as numba has it."""
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        constants = self.state.func_id.code.co_consts
        closures = any(isinstance(one, CodeType) for one in constants)
        dropped = _NEVER if closures else _NEVER + _CLOSURES
        passes.passes = [
            (_instead(one), says) for one, says in passes.passes if one.__name__ not in dropped
        ]
        passes.finalize()
        return [passes]


def _instead(one: Any) -> Any:
    """The pass that is run for one of numba's."""
    return _ArrayRewrites if one is typed_passes.NopythonRewrites else one


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _ArrayRewrites(typed_passes.NopythonRewrites):
    """numba's rewriting of expressions of arrays, where there are any."""

    def run_pass(self, state: Any) -> bool:
        found = any(isinstance(kind, types.List) for kind in state.typemap.values())
        for expression, signature in state.calltypes.items():
            found = found or (signature is not None and _of_arrays(expression, signature, state))
        return super().run_pass(state) if found else False


def _of_arrays(expression: Any, signature: Any, state: Any) -> bool:
    """Whether an expression makes an array, element by element, of others."""
    if not isinstance(expression, ir.Expr) or not isinstance(signature.return_type, types.Array):
        return False
    if expression.op == "call":
        called = state.typemap[expression.func.name]
        return isinstance(getattr(called, "typing_key", None), np.ufunc)
    return expression.op in ("binop", "inplace_binop", "unary")


class _Plain:
    """numba's messages without colours."""

    def _as_it_is(self, msg: str) -> str:
        return msg

    code = errmsg = filename = indicate = highlight = reset = _as_it_is


def linked(library: Any, apart: bool) -> str:
    """LLVM's text of a compiled part and of all that it calls, each once.

    apart: what it calls is not linked into it yet.
    """
    if not apart:
        return library.get_llvm_str()
    module, waiting, seen = library._final_module.clone(), [library], {library}
    while waiting:
        for inner in waiting.pop()._linking_libraries:
            if inner not in seen:
                seen.add(inner)
                waiting.append(inner)
                module.link_in(inner._final_module, preserve=True)
    return str(module)


def _only_new(plain: Any) -> Any:
    """What numba's modules have added since they were loaded, without loading them again."""

    def load_additional_registries(self: Any) -> None:
        if not getattr(self, "_registries", None):
            plain(self)
            return
        for registry in list(self._registries):
            self.install_registry(registry)

    return load_additional_registries


def _calls_remembered(plain: Any) -> Any:
    """numba's choice among the forms of a function of its own, made once for types of arguments."""
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        key = id(self), args, tuple(kws.items())
        if key not in known:
            known[key] = self, plain(self, context, args, kws)  # so that no other has its id
        return known[key][1]

    return get_call_type


def _types_remembered(plain: Any) -> Any:
    """numba's type of a constant, found once for each object."""
    known: dict[int, Any] = {}

    def resolve_value_type(self: Any, val: Any) -> Any:
        if id(val) not in known:
            known[id(val)] = val, plain(self, val)
        return known[id(val)][1]

    return resolve_value_type


def _only_owners(_plain: Any) -> Any:
    """What numba counts references of in a value, without taking all its numbers out too."""
    counted: dict[Any, bool] = {}

    def get_meminfos(self: Any, builder: Any, ty: Any, val: Any) -> list[Any]:
        models = self._context.data_model_manager
        model, found = models[ty], list[Any]()
        if model.has_nrt_meminfo():
            found.append((ty, model.get_nrt_meminfo(builder, val)))
        for kind, taken in model.traverse(builder):
            if kind not in counted:
                counted[kind] = models[kind].contains_nrt_meminfo()
            if counted[kind]:
                found += self.get_meminfos(builder, kind, taken(val))
        return found

    return get_meminfos


def _sizes_remembered(plain: Any) -> Any:
    """The bytes of one of LLVM's types, for which numba has a module made and parsed each time."""
    known: dict[Any, int] = {}

    def get_abi_sizeof(self: Any, ty: Any) -> int:
        key = id(self), str(ty)
        if key not in known:
            known[key] = plain(self, ty)
        return known[key]

    return get_abi_sizeof


def _unheard(_plain: Any) -> Any:
    """numba's own times of its work, which nobody reads."""

    def broadcast(_event: Any) -> None:
        pass

    return broadcast


SHORTER: tuple[tuple[Any, str, Any], ...] = (
    (cpu.CPUContext, "load_additional_registries", _only_new),
    (types.Function, "get_call_type", _calls_remembered),
    (typing_context.BaseContext, "resolve_value_type", _types_remembered),
    (runtime.NRTContext, "get_meminfos", _only_owners),
    (base.BaseContext, "get_abi_sizeof", _sizes_remembered),
    (event, "broadcast", _unheard),
)
"""What numba does again and again, by its owner and its name, and what makes a shorter way of it to
the same answers."""


@contextmanager
def lowered_only() -> Generator[bool]:
    """numba stops at LLVM's language: nothing is optimised, linked or put into memory.  Whether it
    does.

    What it says of candidates that do not fit is not coloured: thousands, which nobody reads.  And
    what it would find again and again is found once: its own modules, the types of constants, and
    which of its functions an operator is for operands of some types.
    """

    def finalize(self: Any) -> None:
        self._finalized = True

    def executable(_self: Any, library: Any, _description: Any, _environment: Any) -> Any:
        library._ensure_finalized()
        return [].append  # numba asks for something to call, each of its own, and never calls it

    def functions(self: Any, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    replaced = (
        (codegen.CPUCodeLibrary, "_optimize_functions", functions),
        (codegen.CPUCodeLibrary, "finalize", finalize),
        (cpu.CPUContext, "get_executable", executable),
    )
    apart = all(hasattr(owner, name) for owner, name, _ in replaced)
    with ExitStack() as stack:
        for owner, name, instead in replaced if apart else ():
            stack.enter_context(mock.patch.object(owner, name, instead))
        for owner, name, made in SHORTER:
            if hasattr(owner, name):
                stack.enter_context(mock.patch.object(owner, name, made(getattr(owner, name))))
        if hasattr(errors, "_termcolor_inst"):
            stack.enter_context(mock.patch.object(errors, "_termcolor_inst", _Plain()))
        yield apart
