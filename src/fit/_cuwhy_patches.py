# SPDX-License-Identifier: Apache-2.0
"""For the dry runs of `cuwhy fit`: the same changes (_cuwhy_changes.py) as edits of the program's own file.

An edit is proposed where the code has a shape of which it is certain what it does; `cuwhy fit` then runs the edited file before it shows the edit. Each
function takes a `Source` and a line that was seen at work there, and returns edits, or none.
"""
import ast
import difflib
import os

MOST_LINES = 10     # removed and added
MOST_WRAPPED = 4    # lines in a new block
MOST_BYTES = 1 << 20
HERE = os.getcwd()
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


class Source:
    def __init__(self, path):
        self.path = os.path.join(HERE, path)
        with open(self.path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES or b"\r" in data or not data.endswith(b"\n"):
            raise ValueError("not a file that is edited here")
        data.decode("utf-8")
        self.lines = data.split(b"\n")      # columns of the tree are bytes
        self.tree = ast.parse(data)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def imports_torch(self):
        names = [alias for node in self.tree.body if isinstance(node, ast.Import) for alias in node.names]
        return any(alias.name.split(".")[0] == "torch" and alias.asname is None for alias in names)

    def above(self, node):
        while node in self.parents:
            node = self.parents[node]
            yield node

    def statement(self, line):
        """The simple statement there, if it has its lines for itself."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, SIMPLE) and node.lineno <= line <= node.end_lineno]
        if len(found) != 1:
            return None
        first, last = self.lines[found[0].lineno - 1], self.lines[found[0].end_lineno - 1]
        alone = not first[:found[0].col_offset].strip() and last[found[0].end_col_offset:].split(b"#")[0].strip() == b""
        return found[0] if alone else None

    def siblings(self, statement):
        """The statements behind it in its block."""
        parent = self.parents[statement]
        for _, block in ast.iter_fields(parent):
            if isinstance(block, list) and statement in block:
                return block[block.index(statement) + 1:]
        return []

    def calls(self, line):
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and node.lineno <= line <= node.end_lineno]

    def replace(self, node, text):
        """An edit: the node, which is on one line, becomes the text."""
        line = self.lines[node.lineno - 1]
        return node.lineno, node.lineno, [line[:node.col_offset] + text + line[node.end_col_offset:]]

    def text(self, node):
        return self.lines[node.lineno - 1][node.col_offset:node.end_col_offset]

    def wrap(self, statements, header):
        """An edit: these statements in a block with that header."""
        first, last = statements[0].lineno, statements[-1].end_lineno
        several = (node for one in statements for node in ast.walk(one) if getattr(node, "end_lineno", 0) != getattr(node, "lineno", 0))
        if last - first >= MOST_WRAPPED or any(isinstance(node, (ast.Constant, ast.JoinedStr)) for node in several):
            return []
        margin = self.lines[first - 1][:statements[0].col_offset]
        more = b"\t" if b"\t" in margin else b"    "
        body = [more + line if line.strip() else line for line in self.lines[first - 1:last]]
        return [(first, last, [margin + header] + body)]

    def edited(self, edits):
        lines = list(self.lines)
        for first, last, new in sorted(edits, reverse=True):
            lines[first - 1:last] = new
        return lines


def has(node, kinds):
    return any(isinstance(one, kinds) for one in ast.walk(node))


def calls_backward(node):
    return any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in ast.walk(node))


def no_grad(source, line):
    """The statement that calls a model, in a block of its own."""
    statement = source.statement(line)
    if not statement or has(statement, (ast.Await, ast.Yield, ast.YieldFrom)) or calls_backward(statement):
        return []
    return source.wrap([statement], b"with torch.no_grad():")


def bf16(source, line):
    """The statement that calls the model and those up to the one with backward, or up to the end of the function."""
    statement = source.statement(line)
    if not statement or calls_backward(statement):
        return []
    wrapped = [statement]
    for other in source.siblings(statement) if not isinstance(statement, ast.Return) else []:
        if calls_backward(other):
            break
        if source.statement(other.lineno) is not other:
            return []
        wrapped.append(other)
        if isinstance(other, ast.Return):
            break
    else:
        wrapped = wrapped[:1]
    if any(has(one, (ast.Await, ast.Yield, ast.YieldFrom)) for one in wrapped):
        return []
    return source.wrap(wrapped, b'with torch.autocast("cuda", torch.bfloat16):')


def names_of(target):
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def checkpoint(source, line):
    """x = block(x), where block is the variable of a loop."""
    statement = source.statement(line)
    loops = [node for node in source.above(statement) if isinstance(node, ast.For)] if statement else []
    variables = {name for loop in loops for name in names_of(loop.target)}
    calls = [call for call in source.calls(line) if isinstance(call.func, ast.Name) and call.func.id in variables]
    if len(calls) != 1 or calls[0].lineno != calls[0].end_lineno or not calls[0].args:
        return []
    func, text = calls[0].func.id.encode(), source.text(calls[0])
    inside = text[len(func):].strip()[1:-1].strip().rstrip(b",")
    return [source.replace(calls[0], b"torch.utils.checkpoint.checkpoint(%s, %s, use_reentrant=False)" % (func, inside))]


def foreach(source, line, name):
    """The call that makes the optimizer gets one more argument."""
    calls = [call for call in source.calls(line) if getattr(call.func, "attr", getattr(call.func, "id", None)) == name]
    if len(calls) != 1 or any(keyword.arg == "foreach" for keyword in calls[0].keywords):
        return []
    last = max(calls[0].args + [keyword.value for keyword in calls[0].keywords], key=lambda node: (node.end_lineno, node.end_col_offset))
    line = source.lines[last.end_lineno - 1]
    return [(last.end_lineno, last.end_lineno, [line[:last.end_col_offset] + b", foreach=False" + line[last.end_col_offset:]])]


def sizes_in(source, size):
    """Numbers that are certain to be a batch size: of a variable or an argument with such a name, or the default of an option."""
    def says_batch(text):
        return isinstance(text, str) and ("batch" in text.lower() or text.lower() == "bs")

    for node in ast.walk(source.tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = node.value if any(says_batch(getattr(target, "id", None)) for target in targets) else None
        elif isinstance(node, ast.keyword) and node.arg == "default":
            words = [arg.value for arg in getattr(source.parents[node], "args", ()) if isinstance(arg, ast.Constant)]
            found = node.value if any(map(says_batch, words)) else None
        elif isinstance(node, ast.keyword):
            found = node.value if says_batch(node.arg) else None
        else:
            continue
        if isinstance(found, ast.Constant) and type(found.value) is int and found.value == size:
            yield found


def smaller_batches(files, size, millionths):
    """So many millionths of the batch, where one number of these files is its size."""
    try:
        found = [(source, number) for source in map(Source, sorted(set(files))) for number in sizes_in(source, size)]
    except (OSError, SyntaxError, ValueError):
        return
    for part in millionths if len(found) == 1 else ():
        source, number = found[0]
        new = size * part // 1000000
        lines = source.edited([source.replace(number, b"%d" % new)])
        if 0 < new < size:
            yield {"patch": "batch %d" % part, "file": source.path, "line": number.lineno, "size": new,
                   "text": b"\n".join(lines).decode("utf-8"), "diff": "\n".join(as_diff(source, lines)) + "\n"}


def as_diff(source, lines):
    inside = not os.path.relpath(source.path, HERE).startswith("..")
    name = os.path.relpath(source.path, HERE) if inside else source.path
    old, new = ([line.decode("utf-8") for line in one] for one in (source.lines[:-1], lines[:-1]))
    return list(difflib.unified_diff(old, new, "a/" + name if inside else name, "b/" + name if inside else name, lineterm=""))


def propose(found):
    """`found`: the lines (file, line, what the shape needs to know) at which a change applies, all of which must be edited."""
    changes = {"no_grad": no_grad, "bf16": bf16, "checkpoint": checkpoint, "foreach": foreach}
    for change, places in found.items():
        try:
            patch = proposal(changes[change], places)
        except (OSError, SyntaxError, ValueError, KeyError, IndexError):
            continue    # no shape that is known
        if patch:
            yield dict(patch, patch=change)


def proposal(change, places):
    if not places or len({file for file, *_ in places}) != 1:
        return None
    source = Source(places[0][0])
    edits = [change(source, *rest) for _, *rest in places]
    if not all(edits) or not source.imports_torch():
        return None
    lines = source.edited({(first, last, tuple(new)) for one in edits for first, last, new in one})
    diff = as_diff(source, lines)
    text = b"\n".join(lines)
    compile(text, source.path, "exec", dont_inherit=True)
    if not diff or sum(line[:1] in "+-" for line in diff[2:]) > MOST_LINES:
        return None
    return {"file": source.path, "line": min(line for _, line, *_ in places), "text": text.decode("utf-8"), "diff": "\n".join(diff) + "\n"}
