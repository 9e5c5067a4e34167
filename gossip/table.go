package gossip

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// DigestEvent reports that a node's digest was replaced, or with Gone that the
// node left the ring or failed; then only Digest.NodeID is set. Events of one
// node that wait are folded into the newest.
type DigestEvent struct {
	Digest digest.Digest
	Gone   bool
}

// Counters count the digests received from the ring by their outcome.
type Counters struct {
	Accepted  uint64 // newer than the digest known
	Stale     uint64 // not newer
	Malformed uint64 // not readable, or of another cell
	Early     uint64 // of a node that is not a member (yet), set aside
	Outranked uint64 // about this very node and newer than the digest it published
}

// maxEarly bounds the digests set aside for nodes that are not members yet.
const maxEarly = 256

// stateVersion is the first byte of the table as push/pull exchanges it. After
// it come entries of a u16 length, big-endian, and a digest.
const stateVersion = 1

// table is this member's knowledge of every member's capacity.
//
// Invariant: every key of entries is a member or self; no key of early is.
type table struct {
	self resource.NodeID
	cell string
	// changed is called with every change, in order, under mu: it must not
	// block.
	changed func(DigestEvent)

	mu      sync.RWMutex
	members map[resource.NodeID]string // its address in the ring
	entries map[resource.NodeID]entry
	early   map[resource.NodeID]entry
	counts  Counters
}

type entry struct {
	digest digest.Digest
	raw    []byte
}

func newTable(self resource.NodeID, cell string, changed func(DigestEvent)) *table {
	return &table{
		self: self, cell: cell, changed: changed,
		members: make(map[resource.NodeID]string), entries: make(map[resource.NodeID]entry), early: make(map[resource.NodeID]entry),
	}
}

// publish records this node's own digest and returns its encoding.
func (t *table) publish(d digest.Digest) []byte {
	e := entry{digest: d.Folded(), raw: d.Append(make([]byte, 0, d.Size()))}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries[t.self] = e
	t.changed(DigestEvent{Digest: e.digest})
	return e.raw
}

// offer takes one encoded digest from the ring. It returns a copy to pass on
// and the node it is about when the digest was news, nil otherwise. It keeps no
// part of raw.
func (t *table) offer(raw []byte) (node resource.NodeID, news []byte) {
	if t.isCopy(raw) {
		return "", nil
	}
	d, err := digest.Parse(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || d.Cell != t.cell {
		t.counts.Malformed++
		return "", nil
	}
	if d.NodeID == t.self {
		if own, published := t.entries[t.self]; !published || digest.Newer(d, own.digest) {
			t.counts.Outranked++
		}
		return "", nil
	}
	if _, member := t.members[d.NodeID]; !member {
		t.counts.Early++
		t.setAside(d, raw)
		return "", nil
	}
	if old, ok := t.entries[d.NodeID]; ok && !digest.Newer(d, old.digest) {
		t.counts.Stale++
		return "", nil
	}
	t.counts.Accepted++
	e := entry{digest: d, raw: slices.Clone(raw)}
	t.entries[d.NodeID] = e
	t.changed(DigestEvent{Digest: d})
	return d.NodeID, e.raw
}

// isCopy reports whether raw is the digest that the table has of a node, and counts
// it: a ring brings each digest to each member about as often as a member sends it, a
// dozen times in a ring of 100, and only the first one needs to be read.
func (t *table) isCopy(raw []byte) bool {
	node := digest.NodeIn(raw)
	t.mu.Lock()
	defer t.mu.Unlock()
	known, found := t.entries[resource.NodeID(node)]
	if !found || !bytes.Equal(known.raw, raw) {
		return false
	}
	if known.digest.NodeID != t.self {
		t.counts.Stale++
	}
	return true
}

// setAside keeps the digest of a node whose join may still be on its way. When
// there are too many it forgets them all: the next exchange brings them back.
func (t *table) setAside(d digest.Digest, raw []byte) {
	old, ok := t.early[d.NodeID]
	if ok && !digest.Newer(d, old.digest) {
		return
	}
	if !ok && len(t.early) >= maxEarly {
		clear(t.early)
	}
	t.early[d.NodeID] = entry{digest: d, raw: slices.Clone(raw)}
}

// join admits a member, with the digest that came before it if any.
func (t *table) join(node resource.NodeID, addr string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members[node] = addr
	if e, ok := t.early[node]; ok {
		delete(t.early, node)
		t.entries[node] = e
		t.changed(DigestEvent{Digest: e.digest})
	}
}

// leave drops a member and its digest.
func (t *table) leave(node resource.NodeID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.members, node)
	delete(t.early, node)
	if _, ok := t.entries[node]; ok {
		delete(t.entries, node)
		t.changed(DigestEvent{Digest: digest.Digest{NodeID: node}, Gone: true})
	}
}

func (t *table) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.members)
}

// others returns the addresses of the other members.
func (t *table) others() map[string]bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	known := make(map[string]bool, len(t.members))
	for node, addr := range t.members {
		if node != t.self {
			known[addr] = true
		}
	}
	return known
}

func (t *table) counters() Counters {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.counts
}

// digests returns every member's digest by node id. The caller must not change
// the elements of their slices.
func (t *table) digests() []digest.Digest {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make([]digest.Digest, 0, len(t.entries))
	for _, e := range t.entries {
		all = append(all, e.digest)
	}
	slices.SortFunc(all, func(a, b digest.Digest) int { return strings.Compare(string(a.NodeID), string(b.NodeID)) })
	return all
}

// state encodes the table for a push/pull.
func (t *table) state() []byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	out := []byte{stateVersion}
	for _, e := range t.entries {
		out = binary.BigEndian.AppendUint16(out, uint16(len(e.raw)))
		out = append(out, e.raw...)
	}
	return out
}

// merge takes another member's table. An unreadable entry ends it with a count:
// the entries before stay.
func (t *table) merge(b []byte) {
	if len(b) == 0 {
		return
	}
	if b[0] != stateVersion {
		t.malformed()
		return
	}
	for b = b[1:]; len(b) > 0; {
		if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
			t.malformed()
			return
		}
		n := int(binary.BigEndian.Uint16(b))
		t.offer(b[2 : 2+n])
		b = b[2+n:]
	}
}

func (t *table) malformed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Malformed++
}
