# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# For the tests beside it: a server of zklock-dev's, in $servers, until the test ends.
cd "$AUTOPKGTEST_TMP"
export TMPDIR="$AUTOPKGTEST_TMP"
zklock-dev --nodes 1 >servers &
dev=$!
# shellcheck disable=SC2154
trap 'status=$?; kill $dev 2>/dev/null; wait $dev || status=1; exit $status' EXIT
until [ -s servers ]; do
    kill -0 $dev
    sleep 0.1
done
servers=$(cat servers)
