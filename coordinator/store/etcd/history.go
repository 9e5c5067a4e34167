package etcd

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// history notices that a cluster was restored from a backup. There are two
// signs:
//
//   - a linearizable answer is of an older revision than one that came before
//     its question; and
//   - the newest version of a key that was read or written has, at its
//     revision, another value than before. This is looked at after every new
//     connection, for by then the restored cluster may have grown beyond the
//     old revision.
//
// Answers that are not linearizable (of watches and leases) are never a sign: a
// member may lag.
type history struct {
	// connections counts those made; calls over a new one wait until the past
	// has been verified.
	connections atomic.Int64

	mu       sync.Mutex
	seen     resource.Revision // the highest of all answers
	anchor   version
	verified int64 // the number of connections at the last verification
	now      *era
}

// era is the time in which the store had one past.
type era struct {
	ended chan struct{}
	err   *record.WentBackError // set before ended is closed
}

// over reports whether another past has come to light.
func (e *era) over() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// moment is the state of history when a call began.
type moment struct {
	seen resource.Revision
	era  *era
}

// version is one write of a key: the newest one known. An empty key is none.
type version struct {
	key  string
	rev  resource.Revision
	hash uint64 // of its value, by seed
}

var seed = maphash.MakeSeed()

func versionOf(key string, value []byte, rev resource.Revision) version {
	return version{key: key, rev: rev, hash: maphash.Bytes(seed, value)}
}

func newEra() *era { return &era{ended: make(chan struct{})} }

func newHistory() *history { return &history{now: newEra()} }

// before is called when a call begins; its answer is checked against the moment.
func (h *history) before() (moment, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.over() {
		return moment{}, h.now.err
	}
	return moment{seen: h.seen, era: h.now}, nil
}

// doubt returns the version to verify, if there is one and a connection is new.
// The number is for trust.
func (h *history) doubt() (anchor version, connections int64, doubted bool) {
	connections = h.connections.Load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.verified == connections {
		return version{}, 0, false
	}
	return h.anchor, connections, true
}

// trust notes that the past was verified over so many connections.
func (h *history) trust(connections int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verified = max(h.verified, connections)
}

// check compares the revision of a linearizable answer with the moment at which
// its call began.
func (h *history) check(began moment, rev resource.Revision) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case began.era != h.now:
		return nil
	case h.now.over():
		return h.now.err
	case rev < began.seen:
		return h.fail(rev)
	}
	h.seen = max(h.seen, rev)
	return nil
}

// lost is called when the anchor is not in the store any more, which is at rev.
func (h *history) lost(began moment, rev resource.Revision) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case began.era != h.now:
		return nil
	case h.now.over():
		return h.now.err
	}
	return h.fail(rev)
}

func (h *history) fail(rev resource.Revision) error {
	h.now.err = &record.WentBackError{Had: h.seen, Has: rev}
	close(h.now.ended)
	return h.now.err
}

// saw records the changes of a watch, or the newest key of an answer.
func (h *history) saw(of *era, v version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if of != h.now || of.over() {
		return
	}
	h.seen = max(h.seen, v.rev)
	if v.key != "" && v.rev > h.anchor.rev {
		h.anchor = v
	}
}

// newest is the highest revision seen.
func (h *history) newest() resource.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

// present is the present era.
func (h *history) present() *era {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// acknowledge begins anew.
func (h *history) acknowledge(e *record.WentBackError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e == nil || h.now.err != e {
		return
	}
	h.seen, h.anchor, h.now = 0, version{}, newEra()
}
