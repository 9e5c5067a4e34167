#!/usr/bin/env bash
# Builds every program twice, from copies of the tracked files in folders of
# different names, and compares the bytes. What differs is named.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for copy in one another/place; do
	mkdir -p "$work/$copy"
	git ls-files -z | xargs -0 cp --parents -t "$work/$copy"
	# Neither copy is a repository, so that nothing of git is stamped.
	(cd "$work/$copy" && make --no-print-directory build >/dev/null)
done
differ=0
for program in muster muster-agent muster-shim muster-launch muster-coordinator muster-dev; do
	if ! cmp "$work/one/bin/$program" "$work/another/place/bin/$program"; then
		differ=1
	fi
	sha256sum "$work/one/bin/$program" | sed "s|$work/one/||"
done
exit "$differ"
