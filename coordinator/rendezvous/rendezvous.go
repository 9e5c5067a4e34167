// Package rendezvous decides at which port the members of a unit of work meet, on the
// host of member 0 (MASTER_PORT). It knows neither hosts nor transactions: its caller
// says which ports of a host other live units have.
package rendezvous

import (
	"hash/fnv"

	"github.com/musterd/muster/resource"
)

// The ports that are chosen, below those that kernels hand out by default (32768).
const (
	First = 20000
	Count = 10000
)

// Preferred is the port at which the choice for a transaction begins. It is also the
// port of work whose record is of an older version, which has no port.
func Preferred(tx resource.TxID) int {
	h := fnv.New32a()
	h.Write([]byte(tx)) // never fails
	return First + int(h.Sum32()%Count)
}

// Choose returns the first port from Preferred on, around the range, that is not taken.
// ok is false where all are taken; port is Preferred then, and two units share it.
// Choose calls taken at most Count times.
func Choose(tx resource.TxID, taken func(port int) bool) (port int, ok bool) {
	preferred := Preferred(tx)
	for i := range Count {
		if port := First + (preferred-First+i)%Count; !taken(port) {
			return port, true
		}
	}
	return preferred, false
}
