package lead

import (
	"bytes"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/loss"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file writes which held devices of a node are lost (package loss), so that what
// holds them changes at a revision of the store. Every second the leader looks at all
// nodes.

// heldOn are the devices that transactions hold on a node, true where the device is
// lost.
func (l *Leader) heldOn(n *node) map[string]bool {
	held := map[string]bool{}
	for _, tx := range l.attemptsOn(n.view.ID) {
		u := l.work.Attempts[tx].Unit
		if u.Attempt != l.work.Attempts[tx] {
			continue
		}
		for _, p := range u.Placements() {
			if p.Node != n.view.ID {
				continue
			}
			for _, uuid := range shown.DevicesOf(p.Assignment) {
				held[uuid] = held[uuid]
			}
		}
		for _, uuid := range n.lostDevicesOf(u) {
			held[uuid] = true
		}
	}
	return held
}

// writeLost writes the key of a node, or deletes it, if that has news. An observation
// is as urgent: both share one rate.
func (l *Leader) writeLost(n *node) {
	k := &n.lost
	reports := shown.ReportsLost(n.said.Conditions)
	switch {
	case !reports && k.Revision == 0 && !k.Odd, k.Writing, n.specRev == 0:
		return
	case !n.connected && l.post.Now().Sub(l.post.Elected()) < observedHold: // the agent's stream may have the device as healthy
		return
	}
	next := loss.Next(k.NodeLost, l.heldOn(n))
	if next.IsEmpty() && k.Revision == 0 {
		k.Load(record.KV{})
		return
	}
	if next.Equal(k.NodeLost) && !k.Odd || !l.observedPace.Take(l.post.Now(), observedRate) {
		return
	}
	l.submitLost(n, next)
}

// submitLost writes the key, with the comparisons of submitObserved.
func (l *Leader) submitLost(n *node, next record.NodeLost) {
	key, of := record.NodeLostKey(n.view.ID), &n.lost
	op, value := record.Delete(key), []byte(nil)
	if !next.IsEmpty() {
		op = record.MustPutRecord(key, next)
		value = op.Value
	}
	of.BeginWrite()
	l.post.Settle(post.Decision{
		Compares: []record.Compare{record.ModRevIs(record.NodeSpecKey(n.view.ID), n.specRev), record.ModRevIs(key, of.Revision)},
		Ops:      []record.Op{op},
		Done: func(outcome txn.Outcome, rev resource.Revision, _ error) {
			switch {
			case outcome == txn.Landed && value == nil:
				of.Load(record.KV{})
				return
			case outcome == txn.Landed:
				of.Load(record.KV{Key: key, Value: value, ModRev: rev})
				return
			}
			l.post.Read(key, func(kv record.KV, found bool, _ resource.Revision) { // the next second tries again
				if !found {
					kv = record.KV{}
				}
				of.Load(kv)
			})
		},
	}, key, func(stored []byte, found bool) bool { return found == (value != nil) && bytes.Equal(stored, value) })
}
