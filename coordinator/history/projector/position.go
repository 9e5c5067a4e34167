package projector

import (
	"context"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file keeps the store's key of the position.

// readPosition reads the key, and returns the store's revision.
func (p *Projector) readPosition(ctx context.Context) (resource.Revision, error) {
	kv, found, at, err := p.config.Store.Get(ctx, record.HistoryPositionKey)
	if err != nil {
		return 0, err
	}
	var now record.HistoryPosition
	if found {
		if now, err = record.Decode[record.HistoryPosition](kv.Key, kv.Value); err != nil {
			return 0, err
		}
	}
	if p.stored.modRev != kv.ModRev || p.stored.since.IsZero() {
		p.stored.position, p.stored.modRev, p.stored.since = now, kv.ModRev, time.Now()
	}
	return at, nil
}

// durable is the position that is true now.
func (p *Projector) durable() record.HistoryPosition {
	if p.spool.Len() == 0 {
		return record.HistoryPosition{Revision: p.position}
	}
	after, upto := p.spool.Reach()
	return record.HistoryPosition{Revision: upto, SpoolOwner: p.config.Name, SpoolAfter: after}
}

// ownsDrained reports whether the store says that this coordinator's spool has rows, and
// it has none any more.
func (p *Projector) ownsDrained() bool {
	return p.known && p.spool.Len() == 0 && p.stored.position.SpoolOwner == p.config.Name
}

// storePosition writes the key where it has moved. A coordinator that is not elected
// writes only that its spool is drained.
func (p *Projector) storePosition(ctx context.Context) {
	p.stored.at = time.Now()
	ctx, cancel := context.WithTimeout(ctx, positionEvery)
	defer cancel()
	if p.term == nil || p.term.narrator == nil {
		if p.spool.Len() > 0 || p.term == nil && !p.known {
			return
		}
		if _, err := p.readPosition(ctx); err != nil || !p.ownsDrained() {
			return
		}
	}
	next := p.durable()
	if next.Revision == 0 && !p.known || next == p.stored.position {
		return
	}
	value, err := record.Encode(next) // the database's revision may be anything
	if err != nil {
		p.log.Error("history_position_not_stored", "error", err)
		return
	}
	t := record.Txn{If: []record.Compare{record.ModRevIs(record.HistoryPositionKey, p.stored.modRev)}}
	if p.term != nil {
		t.If = append(t.If, p.term.office.Held())
	}
	t.Then = []record.Op{record.Put(record.HistoryPositionKey, value)}
	result, err := p.config.Store.Txn(ctx, t)
	if err == nil && result.Succeeded {
		p.stored.position, p.stored.modRev, p.stored.since = next, result.Revision, time.Now()
		return
	}
	if err != nil {
		p.log.Warn("history_position_not_stored", "error", err)
	}
	if _, err := p.readPosition(ctx); err != nil {
		p.log.Warn("history_position_not_read", "error", err)
	}
}

// closeVanished adds an end to the rows that the history has without one and that the
// store does not have any more: they ended at an unknown instant within a gap. The end is
// the newest instant that the store knows, or that of the row itself if it is newer: the
// records of the newest ends may be gone.
func closeVanished(b *history.Batch, has history.Batch) {
	units, grants, jobs, nodes := map[resource.UnitUID]bool{}, map[resource.TxID]bool{}, map[string]bool{}, map[resource.NodeID]bool{}
	for i := range b.Units {
		units[b.Units[i].UID] = true
	}
	for i := range b.Grants {
		grants[b.Grants[i].Tx] = true
	}
	for i := range b.Jobs {
		jobs[b.Jobs[i].UID] = true
	}
	for i := range b.Nodes {
		nodes[b.Nodes[i].ID] = true
	}
	for _, u := range has.Units {
		if !units[u.UID] && u.Ended.IsZero() {
			u.State, u.Reason, u.Ended, u.Revision = unknownEnd, vanished, latest(u.Created, u.Scheduled, u.Started, b.At), b.Upto
			b.Units = append(b.Units, u)
		}
	}
	for _, g := range has.Grants {
		if !grants[g.Tx] && g.Ended.IsZero() {
			g.State, g.Reason, g.Ended, g.Revision = "RELEASED", vanished, latest(g.Committed, g.Ready, g.Ending, b.At), b.Upto
			b.Grants = append(b.Grants, g)
		}
	}
	for _, j := range has.Jobs {
		if !jobs[j.UID] && j.Ended.IsZero() {
			j.Phase, j.Reason, j.Ended, j.Revision = unknownEnd, vanished, latest(j.Created, b.At), b.Upto
			b.Jobs = append(b.Jobs, j)
		}
	}
	for _, n := range has.Nodes {
		if !nodes[n.ID] && n.Deleted.IsZero() {
			n.Phase, n.Deleted, n.Revision = "Deleted", latest(n.Registered, b.At), b.Upto
			b.Nodes = append(b.Nodes, n)
		}
	}
	evictions := map[resource.TxID]bool{}
	for i := range b.Preemptions {
		evictions[b.Preemptions[i].Tx] = true
	}
	for _, e := range has.Preemptions {
		if !evictions[e.Tx] && e.IsOpen() {
			e.Outcome, e.Evicted, e.Revision = unknownEnd, latest(e.Initiated, b.At), b.Upto
			b.Preemptions = append(b.Preemptions, e)
		}
	}
	closeWaits(b, has)
	closeConditions(b, has)
}

// closeConditions is closeVanished for the conditions of nodes: one that the store does
// not show any more is False.
func closeConditions(b *history.Batch, has history.Batch) {
	shown := map[[2]string]bool{}
	for _, c := range b.Conditions {
		shown[[2]string{string(c.Node), c.Type}] = true
	}
	for _, c := range has.Conditions {
		if !shown[[2]string{string(c.Node), c.Type}] && c.New != "False" {
			c.Old, c.New, c.Reason, c.Message = c.New, "False", "", vanished
			c.At, c.Revision = latest(c.At, b.At), b.Upto
			b.Conditions = append(b.Conditions, c)
		}
	}
}

// closeWaits is closeVanished for waits and limits, whose keys have an instant.
func closeWaits(b *history.Batch, has history.Batch) {
	type wait struct {
		unit  resource.UnitUID
		since int64
	}
	waits := map[wait]bool{}
	for _, w := range b.Waits {
		waits[wait{w.Unit, w.Since.UnixMilli()}] = true
	}
	for _, w := range has.Waits {
		if !waits[wait{w.Unit, w.Since.UnixMilli()}] && w.Until.IsZero() {
			w.Until, w.Revision = latest(w.Since, b.At), b.Upto
			b.Waits = append(b.Waits, w)
		}
	}
	type limit struct {
		namespace, name string
		slot            resource.Name
		from            int64
	}
	limits := map[limit]bool{}
	for _, q := range b.Quotas {
		limits[limit{q.Namespace, q.Name, q.Slot, q.From.UnixMilli()}] = true
	}
	for _, q := range has.Quotas {
		if !limits[limit{q.Namespace, q.Name, q.Slot, q.From.UnixMilli()}] && q.To.IsZero() {
			q.To, q.Revision = latest(q.From, b.At), b.Upto
			b.Quotas = append(b.Quotas, q)
		}
	}
}

// States of rows whose end is not known.
const (
	unknownEnd = "Unknown"
	vanished   = "it ended within a gap of the history"
)

func latest(times ...time.Time) (at time.Time) {
	for _, t := range times {
		if t.After(at) {
			at = t
		}
	}
	return at
}

// changedConditions are the conditions of a full read whose status is not the newest that
// the history has, with that as the old one.
func changedConditions(all, has []history.Condition) (changed []history.Condition) {
	newest := map[[2]string]string{}
	for _, h := range has {
		newest[[2]string{string(h.Node), h.Type}] = h.New
	}
	for _, c := range all {
		c.Old = newest[[2]string{string(c.Node), c.Type}]
		if c.Old != c.New {
			changed = append(changed, c)
		}
	}
	return changed
}
