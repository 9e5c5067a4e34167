package lead

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// This file writes the leader's observations of nodes, so that every coordinator shows
// a node alike: its stream, its hardware, the health of its devices. Every second the
// leader looks at all nodes, and writes for those with news.

const (
	// observedHold is the time after an election in which no node is written as not
	// connected: the streams to the agents are only being opened.
	observedHold = 10 * time.Second
	// observedText is the least time between two writes for one node of which only a
	// message has changed.
	observedText = 10 * time.Second
	// mostEncoded bounds the observations that one second encodes. After an election
	// most of them are as the store has them.
	mostEncoded = 1000
)

// observedRate bounds these writes: 50 a second, and 200 at once.
var observedRate = pace.Rate{Every: 20 * time.Millisecond, Burst: 200}

// observeNow is the node's observation.
func (n *node) observeNow() observation {
	o := observation{
		flags: flags{
			connected: n.connected, unheard: n.unheard, diskFull: n.diskFull, memoryPressure: n.memoryPressure,
			quarantined: n.quarantine != "", suspected: n.breaker.IsSuspect(), banned: n.ban != nil,
			unregistered: n.connected && n.revision == 0 && n.quarantine == "", growth: n.unregistered.Message, conflicts: wordsOf(n.conflicts), withheld: n.withheld, lease: n.lease, incarnation: n.incarnation,
		},
		quarantine: n.quarantine, host: n.view.Host, health: n.observed.health, local: n.observed.local,
	}
	if o.suspected {
		o.suspicion = n.breaker.String()
	}
	return o
}

// standingOf makes the record of an observation of the node without the hardware.
func (n *node) standingOf(o observation) record.NodeObserved {
	r := record.NodeObserved{
		Incarnation: o.incarnation, Connected: o.connected, Unheard: o.unheard, Quarantine: o.quarantine, DiskFull: o.diskFull, MemoryPressure: o.memoryPressure,
		Unregistered: o.unregistered, Growth: o.growth, Suspicion: o.suspicion, Banned: o.banned, Lease: o.lease, Local: n.observed.grants, Pool: n.observed.pool,
	}
	for _, c := range n.conflicts {
		r.Conflicts = append(r.Conflicts, record.ObservedConflict{Name: c.Name, Detail: Clip(c.Detail)})
	}
	for device := range devices.MaxDevices {
		if o.withheld&(1<<device) != 0 {
			r.Withheld = append(r.Withheld, device)
		}
	}
	for _, device := range slices.Sorted(maps.Keys(n.health)) {
		h := n.health[device]
		r.Health = append(r.Health, record.ObservedHealth{Device: device, Health: h.Health.String(), Reason: Clip(h.Reason)})
	}
	return r
}

// recordOf makes the record of an observation of the node, as it is now.
func (n *node) recordOf(o observation) record.NodeObserved {
	r := n.standingOf(o)
	if o.host != nil {
		r.Host = factsOf(o.host)
		return r
	}
	// No stream in this term yet: the earlier leader has seen the hardware.
	if before, err := record.Decode[record.NodeObserved](record.NodeObservedKey(n.view.ID), n.observed.value); err == nil {
		r.Host, r.Local, r.Pool, r.Health, r.Incarnation = before.Host, before.Local, before.Pool, before.Health, before.Incarnation
	}
	return r
}

// isSame reports whether two sums are equal; nil is none.
func isSame(a, b *resource.Assignment) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Equal(*b))
}

// writeObserved writes the news of one second, the nodes in turn.
func (l *Leader) writeObserved() {
	nodes := l.state.Nodes()
	encoded := 0
	for range nodes {
		if l.observedAt >= len(nodes) {
			l.observedAt = 0
		}
		if !l.writeObservedOf(l.nodes[nodes[l.observedAt].ID], &encoded) {
			return // the next second begins with this node
		}
		l.observedAt++
	}
}

// writeObservedOf writes an observation if it has news, and reports whether the bounds
// let the leader go on.
func (l *Leader) writeObservedOf(n *node, encoded *int) bool {
	o := n.observeNow()
	before := &n.observed
	switch {
	case before.writing || n.specRev == 0 || !n.specified() || before.known && before.seen == o:
		return true
	case !n.connected && l.post.Now().Sub(l.post.Elected()) < observedHold:
		return true
	case before.known && before.seen.host == o.host && before.seen.flags == o.flags && before.seen.health == o.health && before.seen.local == o.local &&
		l.post.Now().Sub(before.at) < observedText:
		return true
	case *encoded >= mostEncoded:
		return false
	}
	*encoded++
	value, err := record.Encode(n.recordOf(o))
	switch {
	case err != nil: // beyond a bound of the record: the host is odd
		l.post.Warn("observation_not_written", "node", n.view.ID, "error", Clip(err.Error()))
		before.keep(o, l.post.Now())
	case before.revision != 0 && bytes.Equal(value, before.value):
		before.keep(o, l.post.Now())
	case !l.observedPace.Take(l.post.Now(), observedRate):
		return false
	default:
		l.submitObserved(n, o, value)
	}
	return true
}

// submitObserved writes an observation. The write compares the specification: nothing
// lands for a node that was deleted meanwhile. It also compares the key itself, so that a
// write without an answer never lands on a later one.
func (l *Leader) submitObserved(n *node, o observation, value []byte) {
	key, of := record.NodeObservedKey(n.view.ID), &n.observed
	of.beginWrite()
	l.post.Settle(post.Decision{
		Compares: []record.Compare{record.ModRevIs(record.NodeSpecKey(n.view.ID), n.specRev), record.ModRevIs(key, of.revision)},
		Ops:      []record.Op{record.Put(key, value)},
		Done: func(outcome txn.Outcome, rev resource.Revision, _ error) {
			if outcome == txn.Landed {
				of.load(record.KV{Value: value, ModRev: rev})
				of.keep(o, l.post.Now())
				return
			}
			l.post.Read(key, func(kv record.KV, _ bool, _ resource.Revision) { // the next second tries again
				of.load(kv)
			})
		},
	}, key, func(stored []byte, found bool) bool { return found && bytes.Equal(stored, value) })
}
