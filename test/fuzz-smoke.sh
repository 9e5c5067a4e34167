#!/bin/sh
# Runs every fuzz target of the module for the given time each.
set -eu
time=${1:-5s}
git grep -lE '^func Fuzz' -- '*_test.go' | while read -r file; do
	dir=$(dirname "$file")
	grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //' | while read -r target; do
		echo "== ./$dir $target"
		go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time"
	done
done
