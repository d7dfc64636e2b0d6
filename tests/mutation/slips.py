"""Slips of one token, made in the functions of a file: a comparison, a sign, a number, a side, a statement left out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

_PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
    (ast.BitAnd, ast.BitOr),
]
SWAPPED = dict(_PAIRS) | {second: first for first, second in _PAIRS}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
SIDES = {"left": "right", "right": "left"}
_LEFT_ALONE = (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Slip:
    """One slip: the file and the function that it is in, its line, and its number in the file."""

    path: Path
    number: int
    line: int
    function: str

    def code(self) -> CodeType:
        """The function with the slip in it."""
        tree = ast.parse(self.path.read_text())
        list(_changes(tree))[self.number].make()
        return functions_of(compile(ast.fix_missing_locations(tree), str(self.path), "exec"))[self.function]

    def __str__(self) -> str:
        change = list(_changes(ast.parse(self.path.read_text())))[self.number]
        before = ast.unparse(change.inside).splitlines()
        change.make()
        after = ast.unparse(change.inside).splitlines()
        old, new = next(pair for pair in zip(before, [*after, ""], strict=False) if pair[0] != pair[1])
        return f"{old.strip()}  =>  {new.strip()}"


def slips_of(path: Path) -> list[Slip]:
    """All slips that can be made in a file."""
    changes = _changes(ast.parse(path.read_text()))
    return [Slip(path, number, each.line, each.function) for number, each in enumerate(changes)]


def functions_of(code: CodeType) -> dict[str, CodeType]:
    """The functions of a module or class by their names, without those inside of others."""
    found: dict[str, CodeType] = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found[each.co_qualname] = each
            if not each.co_flags & 0x2:
                # Not optimized: the body of a class.
                found |= functions_of(each)
    return found


@dataclass(frozen=True)
class _Change:
    function: str
    inside: ast.FunctionDef
    line: int
    make: Callable[[], None]


def _changes(module: ast.Module) -> Iterator[_Change]:
    for name, function in _functions(module, ""):
        for statement in function.body:
            for line, change in _inside(statement):
                yield _Change(name, function, line, change)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef):
            yield from _functions(each, f"{prefix}{each.name}.")
        elif isinstance(each, ast.FunctionDef) and each.name != "__init__":
            yield f"{prefix}{each.name}", each


def _inside(node: ast.AST) -> Iterator[tuple[int, Callable[[], None]]]:
    """The slips in a statement or expression: what is asserted, raised or imported, and types, are left alone."""
    if isinstance(node, _LEFT_ALONE):
        return
    line = getattr(node, "lineno", 0)
    for change in _own(node):
        yield line, change
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _inside(each)


def _own(node: ast.AST) -> Iterator[Callable[[], None]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            yield lambda: setattr(node, "ops", [SWAPPED[type(op)]()])
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in SWAPPED:
            yield lambda: setattr(node, "op", SWAPPED[type(op)]())
        case ast.Constant(value=value) if type(value) is int:
            yield lambda: setattr(node, "value", value + 1)
        case ast.Constant(value=value) if isinstance(value, str) and value in SIDES:
            yield lambda: setattr(node, "value", SIDES[value])
        case ast.Call(func=ast.Name(id=name) as called) if name in NAMES:
            yield lambda: setattr(called, "id", NAMES[name])
        case ast.Call(func=ast.Attribute(attr=name) as called) if name in NAMES:
            yield lambda: setattr(called, "attr", NAMES[name])
        case ast.UnaryOp(op=ast.Not()):
            yield lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
    if _can_go(node):
        yield lambda: _leave_out(node)


def _can_go(node: ast.AST) -> bool:
    """True if a statement can be left out and what follows still has its names."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    return isinstance(node, ast.AugAssign)


def _leave_out(node: ast.AST) -> None:
    """Turn a statement into one without effect; a generator stays one."""
    silent = ast.Expr(ast.Constant(None))
    if any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(node)):
        silent = ast.Expr(ast.YieldFrom(ast.Tuple([], ast.Load())))
    node.__class__ = ast.Expr
    node.value = silent.value  # type: ignore[attr-defined]
