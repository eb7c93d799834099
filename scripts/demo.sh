#!/bin/sh
# Shows what auditd does: starts a daemon on its built-in defaults in a
# temporary directory, asks it about a poisoned and a benign web page, explains
# the one it stopped, and stops the daemon.
#
#	scripts/demo.sh PATH_TO_AUDITD
set -eu
auditd=$1
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
export XDG_STATE_HOME="$dir/state" XDG_CONFIG_HOME="$dir/config"
mkdir -p "$dir/config/auditd"
# A free port, so that the demo also runs beside a real daemon.
printf 'version: 1\nlisten: 127.0.0.1:0\nlog_level: warn\n' >"$dir/config/auditd/config.yaml"

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
fail() {
	echo "demo.sh: $*" >&2
	exit 1
}

say auditd serve
"$auditd" serve &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon 2>/dev/null || true; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
tries=0
until "$auditd" doctor --json 2>/dev/null | grep -q '"every flow can be decided"'; do
	tries=$((tries + 1))
	kill -0 $daemon 2>/dev/null || fail "the daemon did not start"
	if [ $tries -gt 100 ]; then
		"$auditd" doctor || true
		fail "the daemon did not become ready"
	fi
	sleep 0.2
done

say auditd audit examples/benign-page.json
"$auditd" audit "$here/examples/benign-page.json" || fail "the benign page was stopped (exit code $?)"

say auditd audit examples/poisoned-page.json
code=0
answer=$("$auditd" audit --json "$here/examples/poisoned-page.json") || code=$?
case $code:$answer in
2:*) echo "exit code 2: stopped. The daemon explains why:" ;;
0:*'"rewrite_and_continue"'*)
	case $answer in
	*collect.example.net*) fail "the rewritten page still holds the instruction" ;;
	esac
	echo "the hidden instruction was taken out. The daemon explains why:"
	;;
*) fail "the poisoned page was let through (exit code $code)" ;;
esac
id=$(printf '%s' "$answer" | sed -n 's/.*"decision_id":"\([^"]*\)".*/\1/p')

say auditd log show "$id"
"$auditd" log show "$id"

say auditd log verify
"$auditd" log verify
