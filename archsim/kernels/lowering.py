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
from numba.core import codegen, compiler, compiler_machinery, cpu, errors, ir, typed_passes

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


@contextmanager
def lowered_only() -> Generator[bool]:
    """numba stops at LLVM's language: nothing is optimised, linked or put into memory.  Whether it
    does.

    What it says of candidates that do not fit is not coloured: thousands, which nobody reads.
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
        if hasattr(errors, "_termcolor_inst"):
            stack.enter_context(mock.patch.object(errors, "_termcolor_inst", _Plain()))
        yield apart
