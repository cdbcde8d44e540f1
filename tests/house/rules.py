# SPDX-License-Identifier: Apache-2.0
"""What the scripts of the house share. A rule is a function that returns what is wrong, what it has looked at, in words, and
whether that was enough: one that finds too little to look at has become blind, which is wrong as well."""
import pathlib
import re
import subprocess
import sys


def text(path):
    return pathlib.Path(path).read_text(encoding='utf-8')


def code(path):
    """Without comments."""
    return re.sub(r'/\*.*?\*/', '', text(path), flags=re.DOTALL)


def said(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def skip(why):
    print(why)
    sys.exit(77)


def judge(rule, *words):
    """The end of a script."""
    problems, looked, enough = rule(*words)
    problems = [*problems, *([] if enough else [f'this rule looks at too little, or at the wrong place: {looked}'])]
    print('\n'.join(problems) or looked)
    sys.exit(1 if problems else 0)
