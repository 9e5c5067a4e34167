//go:build race

package hostile

// raced: the race detector makes the programs several times slower and larger. Then a case has
// no bounds, refusals by rate may be missing, and a request may have no answer in time.
const raced = true
