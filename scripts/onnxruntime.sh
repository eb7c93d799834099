#!/bin/sh
# Puts ONNX Runtime's shared library into auditd's cache, out of a pinned
# package, and checks it against a pinned digest. Does nothing when it is
# already there. Prints the path of the library.
#
# Linux on x86-64 takes it from the Python wheel (python3 with pip is needed);
# Linux on arm64 takes the copy that the Go binding's module carries.
set -eu

VERSION=1.32.0
SHA256_amd64=6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f

cache="${XDG_CACHE_HOME:-$HOME/.cache}/auditd"
lib="$cache/libonnxruntime.so.$VERSION"

fail() {
	echo "onnxruntime.sh: $*" >&2
	exit 1
}

digest() { sha256sum "$1" | cut -d' ' -f1; }

case "$(uname -s)-$(uname -m)" in
Linux-x86_64) want=$SHA256_amd64 ;;
Linux-aarch64) want= ;;
*) fail "no library is known for $(uname -s) on $(uname -m); install ONNX Runtime $VERSION or newer and set onnx.library in auditd's configuration" ;;
esac

if [ -f "$lib" ] && { [ -z "$want" ] || [ "$(digest "$lib")" = "$want" ]; }; then
	echo "$lib"
	exit 0
fi

mkdir -p "$cache"
tmp=$(mktemp -d "$cache/.onnxruntime.XXXXXX")
trap 'rm -rf "$tmp"' EXIT INT TERM

if [ -n "$want" ]; then
	command -v python3 >/dev/null || fail "python3 with pip is needed to fetch the library: apt-get install python3-pip"
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
		--python-version 3.12 --implementation cp --abi cp312 \
		--platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64 \
		--dest "$tmp" "onnxruntime==$VERSION" >&2 ||
		fail "pip could not fetch onnxruntime $VERSION: look at its message above, and at your proxy and index settings"
	python3 - "$tmp" "$VERSION" <<'EOF' || fail "the package onnxruntime $VERSION does not hold the library"
import glob, sys, zipfile
folder, version = sys.argv[1:]
with zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]) as z:
    with open(folder + "/lib", "wb") as f:
        f.write(z.read("onnxruntime/capi/libonnxruntime.so." + version))
EOF
	got=$(digest "$tmp/lib")
	[ "$got" = "$want" ] || fail "the library in onnxruntime $VERSION has digest $got, expected $want: not installed"
else
	cp "$(go list -m -f '{{.Dir}}' github.com/yalue/onnxruntime_go)/test_data/onnxruntime_arm64.so" "$tmp/lib" # checked by go.sum
fi
chmod 0644 "$tmp/lib"
mv -f "$tmp/lib" "$lib"
echo "$lib"
