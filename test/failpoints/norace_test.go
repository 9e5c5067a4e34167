//go:build !race

package failpoints_test

// largestGang is in members, each on a node of its own; make test has fewer.
const largestGang = 512
