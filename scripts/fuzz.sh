#!/bin/sh
# Fuzzes every target of the module for so many seconds, two targets at a time:
#
#	scripts/fuzz.sh SECONDS [PATTERN]
#
# PATTERN selects by "package FuzzName". A target that finds something fails,
# and leaves its input below the package's testdata/fuzz.
set -eu
cd "$(dirname "$0")/.."
seconds=$1 pattern=${2:-.}
list=$(grep -rho --include='*_test.go' -H '^func Fuzz[A-Za-z0-9_]*' . |
	sed 's|^\(.*\)/[^/]*_test.go:func \(Fuzz.*\)|\1 \2|' | grep -v '/tools/' | sort -u | grep -E "$pattern")
[ -n "$list" ] || {
	echo "fuzz.sh: no target matches $pattern" >&2
	exit 1
}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export seconds logs
# shellcheck disable=SC2016 # the inner shell expands
echo "$list" | xargs -P 2 -L 1 sh -c '
	log="$logs/$(echo "$0-$1" | tr / _)"
	if timeout $((seconds + 600)) go test -run "^$" -fuzz "^$1\$" -fuzztime "${seconds}s" -parallel 1 "$0" >"$log" 2>&1; then
		echo "ok    $0 $1  $(grep -o "execs: [0-9]*" "$log" | tail -1)"
	else
		echo "FAIL  $0 $1"
		tail -40 "$log"
		exit 255
	fi'
