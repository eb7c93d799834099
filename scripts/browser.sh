#!/bin/sh
# Tests the page in a real headless Chromium, and what a newcomer does with a
# real daemon, which needs what `make deps` fetches:
#
#	scripts/browser.sh [go test flags]
#
# Installs Chromium and Node where they are missing, this is Debian and we are
# root. axe-core, which judges accessibility, comes from npm and is checked
# against a pinned digest. AUDITD_SCREENSHOTS names a folder for screenshots.
set -eu
cd "$(dirname "$0")/.."

AXE=4.14.1
AXE_SHA256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c

fail() {
	echo "browser.sh: $*" >&2
	exit 1
}

packages=
command -v chromium >/dev/null || packages="$packages chromium"
command -v npm >/dev/null || packages="$packages npm"
if [ -n "$packages" ]; then
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "install these first:$packages"
	# shellcheck disable=SC2086 # several words
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; } >/dev/null
fi

axe="${XDG_CACHE_HOME:-$HOME/.cache}/auditd/axe-$AXE.min.js"
digest() { sha256sum "$1" | cut -d' ' -f1; }
if [ ! -f "$axe" ] || [ "$(digest "$axe")" != "$AXE_SHA256" ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	(cd "$tmp" && npm pack --silent "axe-core@$AXE" >/dev/null) || fail "npm could not fetch axe-core $AXE"
	tar -xzf "$tmp/axe-core-$AXE.tgz" -C "$tmp" package/axe.min.js
	[ "$(digest "$tmp/package/axe.min.js")" = "$AXE_SHA256" ] || fail "axe-core $AXE has another digest than expected"
	mkdir -p "$(dirname "$axe")"
	mv -f "$tmp/package/axe.min.js" "$axe"
fi
AUDITD_TEST_AXE=$axe go test -tags integration -run '^TestBrowser' -count=1 -timeout 20m -p 1 "$@" ./httpapi ./cmd/auditd
