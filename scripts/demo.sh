#!/bin/sh
# Shows what auditd does: starts a daemon on its built-in defaults in a
# temporary directory, asks it about a benign web page, a poisoned one and
# a destructive command, explains, and stops the daemon.
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

# field reads one field of a decision.
field() { python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1]) or "")' "$1"; }

say auditd audit examples/poisoned-page.json
answer=$("$auditd" audit --json "$here/examples/poisoned-page.json") || [ $? = 2 ] || fail "the poisoned page could not be decided"
case $(printf '%s' "$answer" | field action):$(printf '%s' "$answer" | field payload) in
allow:* | *collect.example.net*) fail "the poisoned page was let through: $answer" ;;
rewrite_and_continue:*) echo "The hidden instruction was taken out; the agent gets the rest:" ;;
*) echo "Stopped, exit code 2:" ;;
esac
say auditd log show "$(printf '%s' "$answer" | field decision_id)"
"$auditd" log show "$(printf '%s' "$answer" | field decision_id)"

say auditd audit examples/destructive-command.json
code=0
"$auditd" audit "$here/examples/destructive-command.json" || code=$?
[ $code = 2 ] || fail "the command was not stopped (exit code $code)"

say auditd log verify
"$auditd" log verify
