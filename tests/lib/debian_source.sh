#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# debian_source.sh FOLDER PACKAGE: Debian's source package, unpacked once, in FOLDER/PACKAGE. It comes by a list of sources
# in FOLDER; the system's own stays as it is. Exit status 77: it can't be had here, and why is printed.
set -u
mkdir -p "$1" && cd "$1" || exit 1
package=$2

apt()
{
    apt-get -q -y -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$PWD/sources" -o APT::Sandbox::User=root \
        -o Dir::State::Lists="$PWD/lists" "$@"
}

# The system's own lists, of sources instead of binaries.
list()
{
    mkdir -p sources lists/partial
    cat /etc/apt/sources.list.d/debian.sources 2>/dev/null | sed 's/^Types:.*/Types: deb-src/' >sources/debian.sources
    grep -hs '^deb .*debian' /etc/apt/sources.list | sed 's/^deb /deb-src /' >sources/debian.list
}

fetch()
{
    list && rm -rf "$package"[-_][0-9]* && apt update && apt --only-source source "$package" && mv "$package"-[0-9]*/ "$package"
}

[ ! -d "$package" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg-source >/dev/null || {
    echo "apt-get and dpkg-dev are not here"
    exit 77
}
fetch >"$package.log" 2>&1 || {
    echo "Debian's source package of $package can't be had: $(tail -n 1 "$package.log")"
    exit 77
}
