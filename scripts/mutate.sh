#!/bin/sh
# Breaks the code on purpose, one line at a time, and checks that the test that
# is named for it fails. A property whose test passes on broken code is not
# tested. Run from anywhere; an argument is a pattern that selects mutations by
# their first line.
#
# A mutation stands in a file testdata/mutations.txt, as a block of lines:
#
#   # 10 a forged check is accepted
#   test ./dualview TestProperty10Unforgeable
#   file dualview/token.go
#   - if !hmac.Equal(want[:], raw[idSize:]) {
#   + if false {
#
# The "-" line is a text that the file holds exactly once. Lines that begin with
# a tab continue the one before.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
killed=0 survived=0
find . -path '*/testdata/mutations.txt' -not -path './.git/*' | sort | xargs cat > "$tmp/all"
printf '\n' >> "$tmp/all"
name= test= file= old= new= last=
try() {
	[ -n "$name" ] || return 0
	case $name in *"${pattern:-}"*) ;; *) return 0 ;; esac
	OLD=$old NEW=$new perl -0777 -ne '
		my $n = () = /\Q$ENV{OLD}\E/g;
		die "the text to change stands there $n times\n" unless $n == 1;
		s/\Q$ENV{OLD}\E/$ENV{NEW}/; print' "$file" > "$tmp/changed.go" ||
		{ echo "BROKEN   $name: $file"; survived=$((survived + 1)); return 0; }
	printf '{"Replace":{"%s/%s":"%s/changed.go"}}' "$PWD" "$file" "$tmp" > "$tmp/overlay.json"
	set -- $test
	if ! go vet -overlay "$tmp/overlay.json" "$1" > "$tmp/log" 2>&1 && ! grep -q 'unusedresult\|unreachable\|self-assignment' "$tmp/log"; then
		echo "BROKEN   $name: does not compile: $(sed -n 2p "$tmp/log")"
		survived=$((survived + 1))
	elif go test -count=1 -timeout 5m -overlay "$tmp/overlay.json" -run "^($2)\$" "$1" > "$tmp/log" 2>&1; then
		echo "SURVIVED $name"
		survived=$((survived + 1))
	else
		echo "killed   $name"
		killed=$((killed + 1))
	fi
}
pattern=${1:-}
while IFS= read -r line; do
	case $line in
	'# '*) try < /dev/null; name=${line#'# '} test= file= old= new= last= ;;
	'test '*) test=${line#test } ;;
	'file '*) file=${line#file } ;;
	'- '*) old=${line#- } last=old ;;
	'+ '*) new=${line#+ } last=new ;;
	'	'*) if [ "$last" = old ]; then old="$old
$line"; else new="$new
$line"; fi ;;
	'') try < /dev/null; name= ;;
	*) echo "cannot read: $line"; exit 2 ;;
	esac
done < "$tmp/all"
echo "$killed killed, $survived survived"
[ "$survived" = 0 ] && [ "$killed" != 0 ]
