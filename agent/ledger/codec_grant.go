package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Flags of an encoded grant.
const (
	flagIncarnation = 1 << iota // an incarnation follows; else the present one
	flagWasWaiting
)

func appendGrant(dst []byte, g *Grant) []byte {
	var flags byte
	if !g.Incarnation.IsZero() {
		flags |= flagIncarnation
	}
	if g.WasWaiting {
		flags |= flagWasWaiting
	}
	dst = append(dst, flags, byte(g.Origin), byte(g.State))
	dst = appendText(appendText(dst, string(g.Tx)), string(g.Unit))
	dst = appendInt(appendInt(dst, int64(g.Epoch)), int64(g.Revision))
	if flags&flagIncarnation != 0 {
		dst = appendIncarnation(dst, g.Incarnation)
	}
	dst = appendTime(appendTime(dst, g.Since), g.Deadline)
	dst = appendInt(appendInt(dst, int64(g.TTL)), int64(g.Grace))
	dst = appendText(appendText(dst, string(g.By)), g.Reason)
	dst = binary.AppendUvarint(dst, uint64(len(g.Victims)))
	for _, v := range g.Victims {
		dst = appendText(dst, string(v))
	}
	dst = binary.AppendUvarint(dst, uint64(len(g.Members)))
	for i := range g.Members {
		dst = appendMember(dst, &g.Members[i])
	}
	return dst
}

func appendMember(dst []byte, m *Member) []byte {
	dst = binary.AppendUvarint(dst, uint64(m.Index))
	if m.Request == (resource.Request{}) {
		dst = append(dst, 0)
	} else {
		q := &m.Request
		dst = append(dst, 1)
		dst = appendInt(appendInt(appendInt(dst, int64(q.CPU)), int64(q.Memory)), int64(q.GPUs))
		dst = appendText(appendInt(dst, int64(q.GPUShare)), q.GPUModel)
		dst = append(appendInt(dst, int64(q.GPUMemory)), byte(q.NUMA), byte(q.Link))
	}
	a := &m.Assignment
	dst = binary.AppendUvarint(dst, uint64(len(a.CPUs)))
	last := -1
	for _, c := range a.CPUs {
		dst = binary.AppendUvarint(dst, uint64(c.ID-last-1))
		dst = binary.AppendUvarint(dst, uint64(c.Milli))
		last = c.ID
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.Memory)))
	last = -1
	for _, g := range a.Memory {
		dst = binary.AppendUvarint(dst, uint64(g.Node-last-1))
		dst = binary.AppendUvarint(dst, uint64(g.Bytes))
		last = g.Node
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.GPUs)))
	for _, g := range a.GPUs {
		dst = binary.AppendUvarint(dst, uint64(g.Index))
		dst = binary.AppendUvarint(dst, uint64(g.Milli))
		dst = appendText(dst, g.UUID)
	}
	return dst
}

// reader reads fields and keeps the first error; after it every field is zero.
type reader struct {
	b   []byte
	at  int
	err error
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

func (r *reader) incarnation() resource.Incarnation {
	return resource.Incarnation{JournalID: r.text(), BootID: r.text()}
}

func (r *reader) grant() Grant {
	flags := r.byte()
	if flags >= flagWasWaiting<<1 {
		r.fail("grant flags %#x are unknown", flags)
	}
	g := Grant{Origin: Origin(r.byte()), State: State(r.byte()), WasWaiting: flags&flagWasWaiting != 0}
	if g.Origin > OriginOrphan || g.State == None || g.State > Tombstone {
		r.fail("origin %d or state %d is unknown", g.Origin, g.State)
	}
	g.Tx, g.Unit = resource.TxID(r.text()), resource.UnitUID(r.text())
	g.Epoch, g.Revision = resource.Epoch(r.int()), resource.Revision(r.int())
	if flags&flagIncarnation != 0 {
		if g.Incarnation = r.incarnation(); g.Incarnation.IsZero() {
			r.fail("the incarnation is empty")
		}
	}
	g.Since, g.Deadline = r.time(), r.time()
	g.TTL, g.Grace = time.Duration(r.int()), time.Duration(r.int())
	g.By, g.Reason = resource.TxID(r.text()), r.text()
	for n := r.count("victims", 1); n > 0 && r.err == nil; n-- {
		g.Victims = append(g.Victims, resource.TxID(r.text()))
	}
	last := -1
	for n := r.count("members", 5); n > 0 && r.err == nil; n-- {
		m := r.member()
		if m.Index <= last {
			r.fail("member %d follows member %d", m.Index, last)
		}
		last = m.Index
		g.Members = append(g.Members, m)
	}
	if (len(g.Members) == 0) != (g.State == Tombstone) || len(g.Victims) > 0 && g.State != Waiting {
		r.fail("a grant %s has %d members and %d victims", g.State, len(g.Members), len(g.Victims))
	}
	return g
}

func (r *reader) member() Member {
	m := Member{Index: r.upTo("member", 1<<31)}
	if r.bool() {
		q := &m.Request
		q.CPU, q.Memory, q.GPUs = resource.Millicores(r.int()), resource.Bytes(r.int()), int(r.int())
		q.GPUShare, q.GPUModel = resource.Milli(r.int()), r.text()
		q.GPUMemory, q.NUMA, q.Link = resource.Bytes(r.int()), resource.NUMAPolicy(r.byte()), resource.LinkRequirement(r.byte())
		if err := q.Validate(); err != nil && r.err == nil {
			r.err = fmt.Errorf("request of member %d: %w", m.Index, err)
		}
	}
	a := &m.Assignment
	last := -1
	for n := r.count("cpus", 2); n > 0 && r.err == nil; n-- {
		c := resource.CPUGrant{ID: r.index("cpu", last), Milli: resource.Millicores(r.amount("millicores", uint64(resource.WholeCPU)))}
		a.CPUs, last = append(a.CPUs, c), c.ID
	}
	last = -1
	for n := r.count("memory", 2); n > 0 && r.err == nil; n-- {
		g := resource.MemoryGrant{Node: r.index("node", last), Bytes: resource.Bytes(r.amount("bytes", 1<<62))}
		a.Memory, last = append(a.Memory, g), g.Node
	}
	for n := r.count("gpus", 3); n > 0 && r.err == nil; n-- {
		g := resource.GPUGrant{Index: r.upTo("gpu", bitset.MaxMember), Milli: resource.Milli(r.amount("device-milli", uint64(resource.WholeDevice))), UUID: r.text()}
		if k := len(a.GPUs); k > 0 && a.GPUs[k-1].Index >= g.Index || g.UUID == "" {
			r.fail("gpu %d (%q) is out of order, or has no UUID", g.Index, g.UUID)
		}
		a.GPUs = append(a.GPUs, g)
	}
	return m
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
