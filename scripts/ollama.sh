#!/bin/sh
# Builds the real Ollama server, pinned in tools/ollama, for the integration
# tests, and prints the path of its binary. A build takes about five minutes on
# two cores; it is kept by version and processor level, and not repeated.
set -eu
cd "$(dirname "$0")/../tools/ollama"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/auditd
version=$(go list -m -f '{{.Version}}' github.com/ollama/ollama)

# Without a level, Go builds the matrix code for the oldest processors of the
# kind, which is some fifteen times slower.
level=base flags=-O3
if [ "$(uname -m)" = x86_64 ] && grep -qw avx2 /proc/cpuinfo 2>/dev/null && grep -qw fma /proc/cpuinfo; then
	level=x86-64-v3 flags="-O3 -march=x86-64-v3"
fi
binary=$cache/ollama-$version-$level
if [ -x "$binary" ]; then
	echo "$binary"
	exit 0
fi

# Two headers that the module does not carry.
missing=
[ -f /usr/include/nlohmann/json.hpp ] || missing="$missing nlohmann-json3-dev"
[ -f /usr/include/stb/stb_image.h ] || missing="$missing libstb-dev"
if [ -n "$missing" ]; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "ollama.sh: these packages are missing; install them and try again:$missing" >&2
		exit 1
	fi
	{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >&2
fi

# The third comes with another module.
mkdir -p "$cache/include"
go mod download >&2
ln -sfn "$(go list -m -f '{{.Dir}}' github.com/gen2brain/malgo)" "$cache/include/miniaudio"

echo "ollama.sh: building Ollama $version for $level; this takes minutes" >&2
CGO_CFLAGS="$flags -I$cache/include" CGO_CXXFLAGS="$flags -I$cache/include -w" \
	go build -buildvcs=false -ldflags "-X github.com/ollama/ollama/version.Version=${version#v}" -o "$binary.tmp.$$" github.com/ollama/ollama >&2
mv "$binary.tmp.$$" "$binary"
echo "$binary"
