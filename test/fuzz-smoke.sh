#!/bin/sh
# Runs every fuzz target of the module for the given time each. A target that fails
# does not keep the others from running.
set -eu
time=${1:-5s}
failed=0
for target in $(git grep -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/:func /:/'); do
	dir=$(dirname "${target%%:*}")
	name=${target##*:}
	echo "== ./$dir $name"
	go test "./$dir" -run '^$' -fuzz "^$name\$" -fuzztime "$time" || failed=1
done
exit $failed
