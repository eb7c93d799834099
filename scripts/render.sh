#!/bin/sh
# Renders a report of bench quality in a real browser, light, dark and narrow,
# and fails where nothing is drawn. Installs Chromium where it is missing, this is
# Debian and we are root. Usage: scripts/render.sh REPORT.html DIR
set -eu
report=$(realpath "$1") dir=$2
browser=
for name in chromium chromium-browser google-chrome; do
	if command -v "$name" >/dev/null; then browser=$name; break; fi
done
if [ -z "$browser" ]; then
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "a browser is needed: apt-get install chromium" >&2; exit 1; }
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null
	browser=chromium
fi
mkdir -p "$dir"
shoot() { # name width height flags
	out=$dir/$1.png w=$2 h=$3
	shift 3
	rm -f "$out"
	# Names do not resolve: the page must need no network.
	timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --host-resolver-rules='MAP * ~NOTFOUND' \
		--window-size="$w,$h" "$@" --screenshot="$out" "file://$report" >/dev/null 2>&1
	size=$(wc -c <"$out")
	[ "$size" -gt 50000 ] || { echo "$out has $size bytes: the page is empty" >&2; exit 1; }
	echo "$out"
}
shoot light 1280 4600
shoot dark 1280 4600 --blink-settings=preferredColorScheme=0
shoot narrow 500 3000
