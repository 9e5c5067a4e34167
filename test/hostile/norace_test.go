//go:build !race

package hostile

// raced: the race detector makes the programs several times slower and larger. Then a case has
// no bounds, and refusals by rate may be missing.
const raced = false
