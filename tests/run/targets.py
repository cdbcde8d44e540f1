#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""targets.py BUILD SUITE...: what ninja has to build for the tests of these suites."""
import json
import os
import subprocess
import sys


def main():
    build, *suites = sys.argv[1:]
    of = subprocess.run(['meson', 'introspect', '--tests', '--targets', build], check=True, capture_output=True)
    known = json.loads(of.stdout)
    files = {target['id']: target['filename'] for target in known['targets']}
    needed = {file for test in known['tests'] if {name.partition(':')[2] for name in test['suite']} & set(suites)
              for one in test['depends'] for file in files[one]}
    print(*sorted(os.path.relpath(file, build) for file in needed))


main()
