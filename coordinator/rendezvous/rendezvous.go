// Package rendezvous decides at which port the members of a unit of work meet, on the
// host of member 0 (MASTER_PORT). It knows neither hosts nor transactions: its caller
// says which ports of a host other live units have.
package rendezvous

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// Range is the ports First to Last, both included. The zero value is Default.
type Range struct{ First, Last int }

// Default is below the ports that kernels hand out by themselves (32768).
var Default = Range{20000, 29999}

// ParseRange reads FIRST-LAST, ports of 1024 to 65535; "" is Default.
func ParseRange(text string) (Range, error) {
	if text == "" {
		return Default, nil
	}
	first, last, _ := strings.Cut(text, "-")
	a, err1 := strconv.Atoi(first)
	b, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil || a < 1024 || b > 65535 || a > b {
		return Range{}, fmt.Errorf("%q: want FIRST-LAST, ports of 1024 to 65535 such as %s", text, Default)
	}
	return Range{a, b}, nil
}

// String is what ParseRange reads.
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

func (r Range) orDefault() Range {
	if r == (Range{}) {
		return Default
	}
	return r
}

// Len is the number of ports.
func (r Range) Len() int {
	r = r.orDefault()
	return r.Last - r.First + 1
}

// Preferred is the port at which the choice for a transaction begins. That of Default is
// also the port of work whose record is of an older version, which has no port.
func (r Range) Preferred(tx resource.TxID) int {
	h := fnv.New32a()
	h.Write([]byte(tx)) // never fails
	return r.orDefault().First + int(h.Sum32()%uint32(r.Len()))
}

// Choose returns the first port from Preferred on, around the range, that is not taken.
// ok is false where all are taken; port is Preferred then, and two units share it.
// Choose calls taken at most Len times.
func (r Range) Choose(tx resource.TxID, taken func(port int) bool) (port int, ok bool) {
	r = r.orDefault()
	preferred := r.Preferred(tx)
	for i := range r.Len() {
		if port := r.First + (preferred-r.First+i)%r.Len(); !taken(port) {
			return port, true
		}
	}
	return preferred, false
}
