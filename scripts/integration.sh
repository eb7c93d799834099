#!/bin/sh
# The integration tests, inside scripts/testmodel.sh: every package that talks
# to a real server, and the whole daemon with the real model as its auditor.
#
#	scripts/testmodel.sh scripts/integration.sh PATH_TO_AUDITD
set -eu
auditd=$(realpath "$1")
cd "$(dirname "$0")/.."
: "${AUDITD_TEST_OLLAMA:?run this through scripts/testmodel.sh}"
# One package at a time: they ask for contexts of different sizes, and a server
# that loads its model anew for each of two callers may leave one waiting for good.
go test -p 1 -tags integration -timeout 35m ./inference/... ./models/... ./modelproxy ./dualview/quarantine ./cmd/auditd

# The daemon, over HTTP, as a program in any language would use it. The encoder
# that ships judges; the language model is the second of a cascade.
dir=$(mktemp -d)
export XDG_STATE_HOME="$dir/state" XDG_CONFIG_HOME="$dir/config"
mkdir -p "$dir/config/auditd"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$dir/config/auditd/config.yaml" <<YAML
version: 1
listen: 127.0.0.1:$port
auditor: cascade
cascade: ollama
ollama:
  url: $AUDITD_TEST_OLLAMA
  model: $AUDITD_TEST_MODEL
log_level: warn
YAML
"$auditd" serve &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon 2>/dev/null || true; rm -rf "$dir"' EXIT
fail() {
	echo "integration.sh: $*" >&2
	"$auditd" doctor >&2 || true
	exit 1
}
tries=0
until curl -sf "http://127.0.0.1:$port/readyz" >/dev/null; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || fail "the daemon did not become ready"
	kill -0 $daemon 2>/dev/null || fail "the daemon did not start"
	sleep 0.2
done
ask() {
	curl -s --fail-with-body -H "Authorization: Bearer $(cat "$XDG_STATE_HOME/auditd/hook.token")" \
		-H 'Content-Type: application/json' --data-binary "@$1" "http://127.0.0.1:$port/audit"
}
poisoned=$(ask examples/poisoned-page.json)
benign=$(ask examples/benign-page.json)
field() { printf '%s' "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1]) or "")' "$2"; }
case $(field "$poisoned" action):$(field "$poisoned" payload) in
allow:* | *collect.example.net*) fail "the poisoned page was let through: $poisoned" ;;
esac
[ "$(field "$benign" action)" = allow ] || fail "the benign page was stopped: $benign"
stolen=$(ask examples/destructive-command.json)
case $(field "$stolen" action) in
block | defer_to_human) ;;
*) fail "the command was not stopped: $stolen" ;;
esac
for d in "$poisoned" "$benign" "$stolen"; do
	"$auditd" log show "$(field "$d" decision_id)" || fail "a decision can't be explained"
done
"$auditd" log verify
