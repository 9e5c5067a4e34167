package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// reader reads fields and keeps the first error; after it every field is zero.
type reader struct {
	b       []byte
	at      int
	err     error
	version byte
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

var errShort = errors.New("it ends within a field")

func (r *reader) byte() byte {
	if r.err == nil && r.at >= len(r.b) {
		r.err = errShort
	}
	if r.err != nil {
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *reader) bool() bool {
	b := r.byte()
	if b > 1 {
		r.fail("%d is neither 0 nor 1", b)
	}
	return b == 1
}

func (r *reader) uint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	switch {
	case n <= 0:
		r.err = errShort
		return 0
	case n > 1 && r.b[r.at+n-1] == 0:
		r.fail("a number is padded")
		return 0
	}
	r.at += n
	return v
}

func (r *reader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

// upTo reads a number of at most most.
func (r *reader) upTo(what string, most uint64) int {
	v := r.uint()
	if v > most {
		r.fail("%s: %d is greater than %d", what, v, most)
		return 0
	}
	return int(v)
}

// atMost fails where n is greater than most.
func (r *reader) atMost(what string, n, most int) int {
	if n > most {
		r.fail("%s: %d is greater than %d", what, n, most)
		return 0
	}
	return n
}

// count reads the length of a list whose elements take at least size bytes.
func (r *reader) count(what string, size int) int {
	n := r.uint()
	if most := uint64((len(r.b) - r.at) / size); n > most {
		r.fail("%s: %d is greater than %d, which is left", what, n, most)
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count("length of a text", 1)
	if r.err != nil {
		return ""
	}
	r.at += n
	return string(r.b[r.at-n : r.at])
}

func (r *reader) time() time.Time {
	if v := r.int(); v != 0 && r.err == nil {
		return time.Unix(0, v)
	}
	return time.Time{}
}

// revision reads a revision of the store that version 3 has added to an event;
// 0 where an earlier one wrote it.
func (r *reader) revision() resource.Revision {
	if r.version < 3 {
		return 0
	}
	return resource.Revision(r.int())
}

func (r *reader) incarnation() resource.Incarnation {
	return resource.Incarnation{JournalID: r.text(), BootID: r.text()}
}

// index reads the distance from the member before, less one.
func (r *reader) index(what string, last int) int {
	return last + 1 + r.upTo("distance to the next "+what, uint64(bitset.MaxMember-last-1))
}

// amount reads a number in 1..most.
func (r *reader) amount(what string, most uint64) int64 {
	v := r.uint()
	if v < 1 || v > most {
		r.fail("%d %s are outside 1..%d", v, what, most)
	}
	return int64(v)
}
