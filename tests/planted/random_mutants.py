# SPDX-License-Identifier: Apache-2.0
"""Random changes of single operators, constants and statements in src/core, each shown to the unit tests
and to the simulation. Which ones are tried follows from the seed and from the changed lines alone: a
change elsewhere in the sources does not bring other ones."""
import hashlib
import re
import threading

from tree import Broken

TOKEN = re.compile(r"""
    (?P<skip>\s+|/\*.*?\*/|//[^\n]*|^\#(?:[^\n]*\\\n)*[^\n]*)
  | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>\d\w*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<sign>->|\+\+|--|<<=|>>=|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||\.\.\.|.)
""", re.X | re.S | re.M)

OTHERS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
    "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
    "++": ["--"], "--": ["++"], "+=": ["-="], "-=": ["+="],
    "true": ["false"], "false": ["true"],
}
KEYWORDS = {"if", "else", "while", "for", "do", "switch", "case", "default", "return", "break", "continue",
            "goto", "sizeof", "static", "const", "struct", "enum", "unsigned", "int", "char", "bool",
            "size_t", "assert"}


class Token:
    def __init__(self, match):
        self.kind = match.lastgroup
        self.text = match.group()
        self.start, self.end = match.span()


class Mutant:
    def __init__(self, name, function, source, start, end, new):
        self.name = name
        self.function = function
        self.text = source[:start] + new + source[end:]
        self.line = source.count("\n", 0, start) + 1
        first = source.rfind("\n", 0, start) + 1
        last = source.find("\n", end)
        self.before = " ".join(source[first:last].split())
        self.after = " ".join((source[first:start] + new + source[end:last]).split())
        self.result = ""

    def key(self):
        return self.name, self.function, self.before, self.after


def bodies(tokens):
    """The functions: name, and the tokens between their braces."""
    depth, begin, name, parentheses = 0, 0, "", 0
    for i, token in enumerate(tokens):
        parentheses += (token.text == "(") - (token.text == ")")
        if token.text == "{":
            depth += 1
            if depth == 1:
                begin = i + 1
        elif token.text == "}":
            depth -= 1
            if depth == 0 and tokens[begin - 2].text == ")":
                yield name, tokens[begin:i]
        elif token.text == "(" and depth == 0 and parentheses == 1:
            name = tokens[i - 1].text


def closing(tokens, at):
    """The index of the bracket that closes the one at this index."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].text in "([{") - (tokens[i].text in ")]}")
        if depth == 0:
            return i
    return len(tokens) - 1


def operators(body, i):
    token, before = body[i], body[i - 1].text if i > 0 else "{"
    binary = i > 0 and (body[i - 1].kind in ("name", "number") or before in (")", "]")) and \
        before not in KEYWORDS
    if token.text in OTHERS:
        yield from OTHERS[token.text]
    elif token.text == "!":
        yield ""
    elif token.text in "+-" and binary:
        yield "-" if token.text == "+" else "+"
    elif token.kind == "number" and before != "[" and re.fullmatch(r"\d+", token.text):
        yield str(int(token.text) + 1)
        if token.text == "1":
            yield "0"


def statement_end(body, i):
    """If a call or an assignment begins here, or a jump: the index of its semicolon."""
    before = body[i - 1].text if i > 0 else "{"
    if before not in (";", "{", "}", ")", "else", ":"):
        return None
    jump = body[i].text in ("break", "continue", "return")
    follows = body[i + 1].text if i + 1 < len(body) else ""
    plain = body[i].kind == "name" and body[i].text not in KEYWORDS and \
        follows in ("(", "->", ".", "=", "[", "+=", "-=", "++", "--")
    if not plain and not (jump and follows == ";"):
        return None
    while body[i].text != ";":
        i = closing(body, i) if body[i].text in "([{" else i + 1
        if i >= len(body):
            return None
    return i


def without_asserts(body):
    """No test can see what only the compiler reads."""
    i = 0
    while i < len(body):
        if body[i].text == "_Static_assert":
            i = closing(body, i + 1) + 2
            continue
        yield body[i]
        i += 1


def of_body(name, function, source, body):
    parentheses = 0
    for i, token in enumerate(body):
        parentheses += (token.text == "(") - (token.text == ")")
        for new in operators(body, i):
            yield Mutant(name, function, source, token.start, token.end, new)
        if token.text in ("if", "while"):
            condition = source[body[i + 1].start:body[closing(body, i + 1)].end]
            yield Mutant(name, function, source, body[i + 1].start,
                         body[closing(body, i + 1)].end, f"(!{condition})")
        last = statement_end(body, i) if parentheses == 0 else None
        if last is not None:
            yield Mutant(name, function, source, token.start, body[last].start, "(void)0")


def choose(root, seed):
    """All there are, in the order in which this seed tries them."""
    found = {}
    for path in sorted((root / "src/core").glob("*.c")):
        source = path.read_text()
        tokens = [Token(match) for match in TOKEN.finditer(source)]
        tokens = [token for token in tokens if token.kind != "skip"]
        for function, body in bodies(tokens):
            for mutant in of_body(f"src/core/{path.name}", function, source, list(without_asserts(body))):
                found.setdefault(mutant.key(), mutant)
    return sorted(found.values(), key=lambda mutant: hashlib.sha256(
        "\n".join((str(seed), *mutant.key())).encode()).hexdigest())


class Results:
    def __init__(self, mutants, count, schedules, quick):
        self.waiting = iter(mutants)
        self.lock = threading.Lock()
        self.schedules = schedules
        self.quick = quick
        self.tried = []

    def look(self, tree):
        unit = tree.fails_unit()
        if unit:
            return f"unit {unit}"
        tree.build("tests/sim/sim")
        sim = tree.fails_sim(self.schedules)
        return f"sim {sim[0]}" if sim else None

    def attempt(self, tree, number):
        """The next one that compiles."""
        while True:
            with self.lock:
                mutant = next(self.waiting, None)
            if not mutant:
                return
            try:
                tree.write(mutant.name, mutant.text)
                mutant.result = (tree.fails_quick(False) if self.quick else self.look(tree)) or ""
                with self.lock:
                    self.tried.append(mutant)
                print(f"  {number + 1}: {mutant.name}:{mutant.line}: "
                      f"{mutant.result or 'SURVIVES: ' + mutant.after}", flush=True)
                return
            except Broken:
                pass
            finally:
                tree.restore()

    def report(self, reasons_path):
        """False: one survives without a reason."""
        reasons = read_reasons(reasons_path)
        survivors = [mutant for mutant in self.tried if not mutant.result]
        new = [mutant for mutant in survivors if mutant.key() not in reasons]
        for mutant in sorted(new, key=Mutant.key):
            print(f"FAILED: {mutant.name}:{mutant.line} survives without a reason:\n"
                  + as_text(mutant.key(), ""))
        caught = [mutant.result.split()[0] for mutant in self.tried if mutant.result]
        print(f"{len(self.tried)} random mutants: {caught.count('unit')} caught by the unit tests, "
              f"{caught.count('sim')} by the simulation, {caught.count('explore')} by explore, {len(survivors)} survive, "
              f"{len(new)} of them without a reason")
        return not new


# --- survivors.txt ------------------------------------------------------------------------------------


def as_text(key, reason):
    name, function, before, after = key
    return f"{name} {function}\n- {before}\n+ {after}\n{reason}\n"


def read_reasons(path):
    reasons = {}
    for block in re.split(r"\n\n+", path.read_text().strip()):
        lines = block.splitlines()
        if len(lines) < 4 or block.startswith("#"):
            continue
        name, function = lines[0].split()
        reasons[name, function, lines[1][2:], lines[2][2:]] = " ".join(lines[3:])
    return reasons
