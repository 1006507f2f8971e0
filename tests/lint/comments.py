#!/usr/bin/env python3
"""comments.py [--fix] [FILE...]: the form of comments in C files (default: all of ours). Fails where

  - a comment stands beside a field of a struct or beside an enum constant: it belongs above it;
  - a line is longer than 100 columns (a string literal may be);
  - a source does not begin with a comment that says what it is;
  - a comment begins with "Of", "Whose" or a "That" with no verb behind it: nobody can tell what it speaks of;
  - a comment names a source or header that is not there.

--fix moves comments above their fields, fills blocks that are too long anew and shortens rulers; indented lines (formulas,
tables) stay as they are. clang-format (tests/lint/format.sh --fix) joins the declarations again."""

import os
import re
import subprocess
import sys
import textwrap

WIDTH = 100
STRING = r'"(?:\\.|[^"\\\n])*"'
CHARACTER = r"'(?:\\.|[^'\\\n])*'"
DIRECTIVE = r"^[ \t]*#(?:[^\n\\/]|\\\n|\\.|/(?![*/])|/\*.*?\*/)*"
TOKEN = re.compile(rf"/\*.*?\*/|//[^\n]*|{STRING}|{CHARACTER}|{DIRECTIVE}", re.S | re.M)
# A first word that is English rather than a name or a formula.
WORD = re.compile(r"^([a-z][a-z-]+|a)((?:'s)?[,:;.]|(?:'s)? (?![=*+/<>|(-])|$)")
STRUCT = re.compile(r"^(typedef\s+)?((static|const|extern)\s+)*(struct|union)\b[^()=;]*$")
ENUM = re.compile(r"^(typedef\s+)?((static|const)\s+)*enum\b[^()=;]*$")
RULER = re.compile(r"^---- .* -{2,}$|^-{4,}$")
FIXED = re.compile(r"^  |\S {3,}\S|^\||[─│►▼]")
ITEM = re.compile(r"^([-*] |\d+[.)] )")
SUBJECTLESS = re.compile(r"^/\*\s+(Of|Whose|That(?! (?:is|was|has|makes|says|would|can)\b))\b")
FILE = re.compile(r"(?<![\w./<*-])(?:[a-z_0-9]+/)*([a-z_0-9]+\.(?:c|h|def))\b")
NOT_YET = ("include/", "tool/")
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def capital(text):
    return text[0].upper() + text[1:] if WORD.match(text) else text


def lines_of(comment):
    """The lines of a comment without its frame, each with the indentation that it has inside."""
    lines = [line.rstrip() for line in comment[2:-2].split("\n")]
    lines[0] = lines[0].removeprefix(" ")
    for i, line in enumerate(lines[1:], 1):
        framed = re.match(r"^\s*\*", line)
        lines[i] = re.sub(r"^\s*\*(?!\*) ?", "", line) if framed else line.strip()
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def wrapped(lines, room):
    """Paragraphs filled to the width, with rulers and indented lines between them as they are."""
    out, paragraph = [], []

    def flush():
        if paragraph:
            text = " ".join(line.strip() for line in paragraph)
            out.extend(textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False,
                                     subsequent_indent="  " if ITEM.match(text) else ""))
            paragraph.clear()

    for line in lines:
        if not line.strip() or RULER.match(line.strip()) or FIXED.search(line):
            flush()
            out.append(line)
        else:
            if ITEM.match(line):
                flush()
            paragraph.append(line)
    flush()
    return out


def filled(lines, indent):
    """A comment with these lines that begins at column `indent`."""
    room = WIDTH - indent - 3
    out = wrapped(lines, room)
    if out and RULER.match(out[0].strip()):
        limit = room - 3 if len(out) == 1 else room
        out[0] = out[0][:limit].rstrip()
    elif out and len(out[-1]) + indent + 6 > WIDTH and not FIXED.search(out[-1]) and " " in out[-1].strip():
        out[-1:] = out[-1].rsplit(" ", 1)  # the end of the comment needs room
    rest = [(" " * indent + " * " + line).rstrip() for line in out[1:]]
    return "\n".join(["/* " + (out[0] if out else "")] + rest) + " */"


class Scanner:
    """Finds comments, and for those beside a field or constant where that begins."""

    def __init__(self, text):
        self.text, self.comments = text, []
        self.braces, self.outer = [], []  # kinds of the open braces; (field, parens) around each
        self.field = self.last = None     # start of the open field, of the one that ended last
        self.parens, self.code = 0, []
        end = 0
        for token in TOKEN.finditer(text):
            for at in range(end, token.start()):
                self.take(text[at], at)
            end = token.end()
            word = token.group()
            if word.startswith("/*"):
                self.comments.append((token.start(), end, word, self.owner(token.start())))
            elif word[0] in "\"'":
                self.take('"', token.start())

    def kind(self):
        return self.braces[-1] if self.braces else ""

    def owner(self, start):
        line = self.text.rfind("\n", 0, start) + 1
        beside = self.text[line:start].strip() and self.kind() in ("struct", "enum") and not self.parens
        return (self.last if self.field is None else self.field) if beside else None

    def take(self, char, at):
        if char.isspace():
            self.code.append(char)
        elif char == "{":
            head = "".join(self.code).strip()
            kind = "struct" if STRUCT.match(head) else "enum" if ENUM.match(head) else "other"
            self.outer.append((self.field, self.parens))
            self.braces.append(kind)
            self.code, self.field, self.last, self.parens = [], None, None, 0
        elif char == "}":
            if self.braces:
                self.braces.pop()
                self.field, self.parens = self.outer.pop()
            self.code, self.last = [], None
        else:
            self.parens += (char in "([") - (char in ")]")
            self.field = at if self.field is None else self.field
            self.code.append(char)
            if not self.parens and (char == ";" or (char == "," and self.kind() == "enum")):
                self.last, self.field, self.code = self.field, None, []


def line_of(text, at):
    return text.rfind("\n", 0, at) + 1


def rest_of_line(text, at):
    end = text.find("\n", at)
    return text[at:len(text) if end < 0 else end]


def words_of(comments):
    words = []
    for comment in comments:
        if words and not words[-1].endswith((".", ":", ";", ",")):
            words[-1] += "."
        words.extend(line.strip() for line in lines_of(comment))
    return [capital(words[0])] + words[1:] if words else words


def move_up(text):
    """Puts comments beside fields and constants on lines above them."""
    above, cuts = {}, []
    for start, end, comment, owner in Scanner(text).comments:
        behind = rest_of_line(text, end).strip()
        if owner is None or (behind and not behind.startswith("/*")):
            continue
        line = line_of(text, owner)
        if not text[line:owner].strip():
            above.setdefault(line, []).append(comment)
            cuts.append((start, end))
    out, done = [], 0
    for at, end, comments in sorted([(a, a, c) for a, c in above.items()] + [(a, b, None) for a, b in cuts],
                                    key=lambda e: (e[0], e[2] is None)):
        out.append(text[done:at])
        if comments:
            line = rest_of_line(text, at)
            indent = len(line) - len(line.lstrip())
            out.append(" " * indent + filled(words_of(comments), indent) + "\n")
        else:
            out[-1] = out[-1].rstrip(" \t")
        done = end
    return "".join(out) + text[done:]


def is_long(text):
    return any(len(line) > WIDTH for line in text.split("\n"))


def fill(text):
    """Fills blocks anew that are too long; a comment behind a statement that is moves above it."""
    out, done = [], 0
    for start, end, comment, _ in Scanner(text).comments:
        line = line_of(text, start)
        before, behind = text[line:start], rest_of_line(text, end)
        whole = text[line:end] + behind
        if behind.strip() or not is_long(whole) or before.lstrip().startswith("#") or "\\\n" in whole:
            continue
        indent = len(before) - len(before.lstrip())
        if not before.strip():
            out += [text[done:start], filled(lines_of(comment), len(before))]
        elif (line >= done and before.rstrip().endswith((";", "{", ",", "}")) and
              text[:line].rstrip().endswith((";", "{", "}", "*/", ":", ","))):
            out += [text[done:line], " " * indent, filled(words_of([comment]), indent), "\n", before.rstrip()]
        else:
            continue
        done = end
    return "".join(out) + text[done:]


def formed(text):
    for _ in range(4):
        new = fill(move_up(text))
        if new == text:
            break
        text = new
    return text


def git_files(*patterns):
    command = ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def unclear(path, text, known):
    """Comments without a subject, and those that name files that are not there."""
    for start, _, comment, _ in Scanner(text).comments:
        line = text.count("\n", 0, start) + 1
        if SUBJECTLESS.match(comment) and not path.startswith(NOT_YET):
            yield f"{path}:{line}: the comment has no subject: {comment[3:40].split()[0]} ... of what?"
        for name in FILE.findall(comment):
            if name not in known:
                yield f"{path}:{line}: there is no {name}"


def faults(path, text):
    where = [text.count("\n", 0, start) + 1 for start, end, _, owner in Scanner(text).comments
             if owner is not None and not rest_of_line(text, end).strip()]
    yield from (f"{path}:{line}: a comment beside a field belongs above it" for line in where)
    for number, line in enumerate(text.split("\n"), 1):
        if len(re.sub(STRING, '""', line)) > WIDTH:
            yield f"{path}:{number}: {len(line)} columns, {WIDTH} are allowed"
    if path.endswith(".c") and not text.startswith("/*"):
        yield f"{path}:1: no comment says what this file is"


def main():
    fix = "--fix" in sys.argv
    paths = [a for a in sys.argv[1:] if a != "--fix"]
    if not paths:
        os.chdir(ROOT)
        paths = [path for path in git_files("*.c", "*.h", "*.def") if os.path.exists(path)]
    known = {os.path.basename(path) for path in git_files("*.c", "*.h", "*.def")} | {"cmocka.h"}
    bad = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        new = formed(text) if fix else text
        if new != text:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
        for fault in [*faults(path, new), *unclear(path, new, known)]:
            print(fault)
            bad = 1
    return bad


sys.exit(main())
