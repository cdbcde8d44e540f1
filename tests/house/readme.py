# SPDX-License-Identifier: Apache-2.0
"""readme.py COMPILER README INCLUDE LIBRARY: each C program in the README compiles and links, without a warning."""
import re
import subprocess
import sys
import tempfile

compiler, readme, include, library = sys.argv[1:]
programs = re.findall(r"^```c\n(.*?)^```$", open(readme).read(), re.M | re.S)
if not programs:
    sys.exit("README.md has no C program")
with tempfile.TemporaryDirectory() as folder:
    for number, program in enumerate(programs):
        source = f"{folder}/{number}.c"
        open(source, "w").write(program)
        command = [compiler, "-Wall", "-Wextra", "-Werror", "-I", include, "-o", f"{folder}/a.out", source, library]
        if subprocess.run(command).returncode != 0:
            sys.exit(f"program {number + 1} of README.md does not build")
        if len(program.splitlines()) > 20:
            sys.exit(f"program {number + 1} of README.md is longer than 20 lines")
