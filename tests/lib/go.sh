#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# go.sh SOURCE PROGRAM: build a program of one file in Go, which uses go-zookeeper, with Debian's packages and nothing from the
# network: golang-github-go-zookeeper-zk-dev (Debian 13), or golang-github-samuel-go-zookeeper-dev (12), which has the path
# that it had before. Its variable "release", if it has one, is set to 1 or 0 accordingly. Exit status 77: neither is
# installed, or there is no Go; nothing is done if the program is newer than the source.
# go.sh --packages: their names, for this system.
set -u
if [ "$1" = --packages ]; then
    if apt-cache show golang-github-go-zookeeper-zk-dev >/dev/null 2>&1; then
        echo golang-go golang-github-go-zookeeper-zk-dev
    else
        echo golang-go golang-github-samuel-go-zookeeper-dev
    fi
    exit
fi
source=$1 program=$2
packages=/usr/share/gocode/src/github.com
command -v go >/dev/null || exit 77
if [ -e $packages/go-zookeeper/zk ]; then
    path=github.com/go-zookeeper/zk release=1.0
elif [ -e $packages/samuel/go-zookeeper/zk ]; then
    path=github.com/samuel/go-zookeeper/zk release=0.0
else
    exit 77
fi
[ -z "$(find "$program" -newer "$source" 2>/dev/null)" ] || exit 0
mkdir -p "$program.go" || exit 1
sed "s|\"github.com/.*/zk\"|\"$path\"|" "$source" >"$program.go/main.go" &&
    GO111MODULE=off GOPATH=/usr/share/gocode GOFLAGS='' GOENV=off GOTOOLCHAIN=local GOCACHE="$program.go/cache" \
        go build -ldflags "-X main.release=$release" -o "$program" "$program.go/main.go"
