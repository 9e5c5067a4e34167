//go:build race

package failpoints_test

// largestGang is in members, each on a node of its own: the race detector
// bounds the goroutines of a process, of which a node has dozens.
const largestGang = 64
