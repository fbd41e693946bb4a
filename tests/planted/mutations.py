"""Mutants: small changes of the syntax tree, of the kind that slips through a review."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.planted.planting import ROOT

BINARY: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.Mult(),
    ast.Pow: ast.Mult(),
    ast.BitAnd: ast.BitOr(),
    ast.BitOr: ast.BitAnd(),
}
COMPARED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
}
NAMES = {"max": "min", "amax": "amin", "argmax": "argmin", "any": "all", "sum": "mean"}
NAMES |= {"cummax": "cummin", "exp": "expm1", "log": "log1p", "sin": "cos", "square": "abs"}
NAMES |= {"maximum": "minimum", "zeros": "ones", "zeros_like": "ones_like", "tril": "triu"}
NAMES |= {"new_zeros": "new_ones", "tanh": "sigmoid", "scatter_add": "scatter"}
NAMES |= {two: one for one, two in NAMES.items()}
"""Calls that are taken for each other."""
DROPPED = {"detach", "clamp", "clamp_min", "flip", "masked_fill", "to", "double", "clone", "abs"}
"""Methods whose result has the shape of what they are called on, so that they can be forgotten."""
SYMMETRIC = {"transpose", "minimum", "maximum", "logaddexp"}
"""Calls whose last two arguments may change places."""
UNTOUCHED = (ast.Raise, ast.Assert, ast.JoinedStr)
"""What is said, and not what is computed."""


@dataclass(frozen=True)
class Mutant:
    """One change of one place."""

    file: str
    function: str
    line: int
    before: str
    after: str
    start: int
    """Offset of what is replaced (bytes)."""
    end: int

    @property
    def name(self) -> str:
        """What it is known by, wherever the function is in its file."""
        return f"{self.file} {self.function}: {self.before} -> {self.after}"

    @property
    def changed(self) -> str:
        """The whole text of the file with the mutant."""
        text = (ROOT / self.file).read_bytes()
        after = self.after if self.after == "pass" else f"({self.after})"
        return (text[: self.start] + after.encode() + text[self.end :]).decode()


def mutants(file: str) -> list[Mutant]:
    """All mutants of a file, but for those of oracles, which are what others are compared with."""
    text = (ROOT / file).read_text(encoding="utf-8")
    starts = [0]
    for row in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    found = []
    for node, function in _computed(ast.parse(text), ""):
        for after in _changes(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            before = ast.unparse(node)
            found.append(Mutant(file, function, node.lineno, before, after, start, end))
    return found


def files(path: str) -> list[str]:
    """Modules below a path of the project."""
    whole = ROOT / path
    paths = [whole] if whole.suffix else sorted(whole.rglob("*.py"))
    return [str(Path(p).relative_to(ROOT)) for p in paths if p.name != "__init__.py"]


def _computed(node: ast.AST, function: str) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Statements and expressions inside of functions, each with the name of its function."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        if not node.name.lstrip("_").startswith("oracle"):
            for child in _body(node):
                yield from _computed(child, f"{function}.{node.name}".lstrip("."))
    elif not isinstance(node, UNTOUCHED):
        if function and isinstance(node, ast.stmt | ast.expr):
            yield node, function
        for child in _children(node):
            yield from _computed(child, function)


def _body(node: ast.FunctionDef | ast.ClassDef) -> list[ast.stmt]:
    """What runs when a function is called; of a class, its functions."""
    if isinstance(node, ast.FunctionDef):
        return node.body
    return [child for child in node.body if isinstance(child, ast.FunctionDef)]


def _children(node: ast.AST) -> list[ast.AST]:
    """Parts of a node, but for annotations."""
    parts: list[ast.AST] = []
    for name, field in ast.iter_fields(node):
        if name != "annotation":
            parts += field if isinstance(field, list) else [field]
    return [part for part in parts if isinstance(part, ast.AST)]


def _changes(node: ast.stmt | ast.expr) -> Iterator[str]:
    if isinstance(node, ast.stmt):
        if _can_go(node):
            yield "pass"
    elif isinstance(node, ast.Constant):
        yield from _numbers(node.value)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    else:
        yield from _operators(node)


def _can_go(node: ast.stmt) -> bool:
    """Whether the function still runs without a statement: it changes what was there before."""
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
    read = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
    return node.targets[0].id in read


def _numbers(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int):
        yield str(value + 1)
        if value:
            yield str(value - 1)
    elif isinstance(value, float):
        yield repr(value + 1)


def _operators(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        yield ast.unparse(ast.BinOp(node.left, BINARY[type(node.op)], node.right))
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        ops = [COMPARED[type(node.ops[0])], *node.ops[1:]]
        yield ast.unparse(ast.Compare(node.left, ops, node.comparators))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.unparse(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield ast.unparse(node.operand)
    elif isinstance(node, ast.IfExp):
        yield ast.unparse(ast.IfExp(node.test, node.orelse, node.body))


def _calls(node: ast.Call) -> Iterator[str]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if isinstance(node.func, ast.Attribute):
        owner, name = node.func.value, node.func.attr
        if name in NAMES:
            other = ast.Attribute(owner, NAMES[name], ast.Load())
            yield ast.unparse(ast.Call(other, node.args, node.keywords))
        if name in DROPPED and not (isinstance(owner, ast.Name) and owner.id == "torch"):
            yield ast.unparse(owner)
    last = node.args[-2:]
    starred = any(isinstance(arg, ast.Starred) for arg in last)
    if called in SYMMETRIC:
        return
    if len(last) > 1 and not starred and ast.dump(last[0]) != ast.dump(last[1]):
        swapped = [*node.args[:-2], *last[::-1]]
        yield ast.unparse(ast.Call(node.func, swapped, node.keywords))
