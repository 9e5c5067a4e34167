package projector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/narrate"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// This file finds the revision at which a term begins.

// begin begins to follow the store, or says why it has to wait.
func (p *Projector) begin(ctx context.Context) {
	t := p.term
	t.retryAt = time.Now().Add(firstRetry)
	asking, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	why, err := p.find(ctx, asking)
	if err != nil {
		why = err.Error()
	}
	if why != t.why && why != "" {
		p.log.Warn("history_waits", "reason", why)
	}
	t.why = why
}

// find is begin: why is the reason of a wait that is no fault.
func (p *Projector) find(ctx, asking context.Context) (why string, err error) {
	now, err := p.readPosition(asking)
	if err != nil {
		return "", err
	}
	const crowded = "the spool is more than half full"
	at, err := p.config.Warehouse.Position(asking)
	if err != nil {
		p.fail(err)
		if p.crowded() {
			return crowded, nil
		}
		return p.beginWithoutDatabase(ctx, asking)
	}
	p.recover()
	if at.Revision < 0 {
		return "", fmt.Errorf("the history stands at revision %d: want 0 or more; a hand has changed table history_position", int64(at.Revision))
	}
	if of := witnessIn(at.Mark).Cluster; of != "" && of != p.config.Cluster {
		return fmt.Sprintf("the database has the history of cluster %s, and this is cluster %s: give each cluster a database of its own (history.dsn)", of, p.config.Cluster), nil
	}
	p.take(at)
	if p.crowded() { // it is drained from the position on
		return crowded, nil
	}
	p.mark = at.Mark
	if last, found, err := p.spool.Last(); err != nil {
		return "", err
	} else if found {
		p.mark = last.Mark
	}
	restored, err := p.restored(asking, at, now)
	if err != nil {
		return "", err
	}
	if restored {
		return "", p.revert(ctx, asking, at)
	}
	return p.beginAt(ctx, asking, max(at.Revision, p.spooledUpto()), true)
}

// crowded reports whether the spool has too little room for a term to begin.
func (p *Projector) crowded() bool { return p.spool.Bytes() > p.spoolBytes()/2 }

func (p *Projector) spooledUpto() resource.Revision {
	_, upto := p.spool.Reach()
	return upto
}

// beginWithoutDatabase goes on where the spool ends or, by the store's key, the
// database.
func (p *Projector) beginWithoutDatabase(ctx, asking context.Context) (why string, err error) {
	at := p.stored.position
	switch {
	case p.spool.Len() > 0:
		last, _, err := p.spool.Last()
		if err != nil {
			return "", err
		}
		p.mark = last.Mark
		return p.beginAt(ctx, asking, last.Upto, false)
	case at.Revision > 0 && at.SpoolOwner == "":
		p.position = max(p.position, at.Revision) // another projector has written since this one knew it
		return p.beginAt(ctx, asking, at.Revision, false)
	}
	return "the database does not answer, and the store does not say how far it is", nil
}

// beginAt goes on behind a revision, by the keys as they were. connected: the database
// answers.
func (p *Projector) beginAt(ctx, asking context.Context, at resource.Revision, connected bool) (why string, err error) {
	if at == 0 {
		return "", p.beginFresh(ctx, asking, 0, 0, "")
	}
	kvs, _, err := p.config.Store.Range(asking, record.Root, store.RangeOptions{AtRevision: at})
	var compacted *record.CompactedError
	switch {
	case errors.As(err, &compacted):
		if !connected {
			return "the database does not answer, and the store does not have the changes any more", nil
		}
		if why := p.awaitsOwner(at); why != "" {
			return why, nil
		}
		return "", p.beginFresh(ctx, asking, at, compacted.Floor, fmt.Sprintf("the store was compacted at revision %d", int64(compacted.Floor)))
	case err != nil:
		return "", err
	}
	n := narrate.New(p.config.Cluster)
	n.Load(kvs, at)
	return "", p.open(ctx, asking, n, connected)
}

// awaitsOwner says for which spool this projector waits, "" for none.
func (p *Projector) awaitsOwner(at resource.Revision) string {
	s := p.stored
	if s.position.SpoolOwner == "" || s.position.SpoolOwner == p.config.Name || s.position.Revision <= at {
		return ""
	}
	left := p.config.SpoolWait - time.Since(s.since)
	if left <= 0 {
		return ""
	}
	return fmt.Sprintf("coordinator %s has revisions %d to %d in its spool; without it there is a gap at %s", s.position.SpoolOwner,
		int64(at)+1, int64(s.position.Revision), time.Now().Add(left).UTC().Format(time.RFC3339))
}

// beginFresh begins with a full read, at a revision or, for 0, now. gap is why the
// changes between after and that revision are missing; "" for a history that begins.
func (p *Projector) beginFresh(ctx, asking context.Context, after, at resource.Revision, gap string) error {
	kvs, now, err := p.config.Store.Range(asking, record.Root, store.RangeOptions{AtRevision: at})
	if err != nil {
		return err
	}
	if at == 0 {
		at = now
	}
	n := narrate.New(p.config.Cluster)
	n.LoadAll(kvs, at)
	b := n.Take()
	b.After = after
	if gap != "" {
		b.Gaps = []history.Gap{{From: after + 1, Upto: at, At: b.At, Reason: gap}}
		has, err := p.config.Warehouse.Read(asking, b)
		if err != nil {
			p.fail(err)
			return err
		}
		closeVanished(&b, has)
		b.Conditions = changedConditions(b.Conditions, has.Conditions)
		p.metrics.gaps.Inc()
		p.log.Error("history_gap", "from", int64(after)+1, "upto", int64(at), "reason", gap)
	}
	p.mark = witness{}.mark()
	if err := p.open(ctx, asking, n, true); err != nil {
		return err
	}
	for _, kv := range kvs {
		p.term.witness.see(kv)
	}
	p.term.seal(&b)
	p.term.first = &b
	return nil
}

// open watches the store from the narrator's revision on. connected: the database answers.
func (p *Projector) open(ctx, asking context.Context, n *narrate.Narrator, connected bool) error {
	t := p.term
	for _, err := range n.Faults() {
		p.metrics.unreadable.Inc()
		p.log.Error("history_key_unreadable", "error", err)
	}
	t.witness = witnessIn(p.mark)
	t.witness.Cluster = p.config.Cluster
	var sliced time.Time
	if t.witness.SlicedMillis != 0 {
		sliced = time.UnixMilli(t.witness.SlicedMillis)
	}
	if t.blind = !connected || p.spool.Len() > 0; t.blind {
		t.slicer = usage.NewBlindSlicer(n.Live(), sliced)
	} else {
		last, err := p.config.Warehouse.LastCounted(asking)
		if err != nil {
			p.fail(err)
			return err
		}
		t.slicer = usage.NewSlicer(n.Live(), last, sliced)
	}
	t.slicer.Hear(n.Uses())
	watching, cancel := context.WithCancel(ctx)
	t.narrator, t.cancel, t.taken, t.moved = n, cancel, time.Now(), true
	t.changes = p.config.Store.Watch(watching, record.Root, store.WatchOptions{From: n.Revision() + 1})
	p.log.Info("history_begins", "after", int64(n.Revision()), "counters_known", !t.blind)
	return nil
}

// restored reports whether the store does not have the past any more that the history
// was made of. now is the store's revision.
func (p *Projector) restored(ctx context.Context, at history.Position, now resource.Revision) (bool, error) {
	upto := max(at.Revision, p.spooledUpto())
	if now < upto {
		return true, nil
	}
	w := witnessIn(at.Mark)
	if w.Key == "" {
		return false, nil
	}
	kvs, _, err := p.config.Store.Range(ctx, w.Key, store.RangeOptions{AtRevision: w.Revision, Limit: 1})
	var compacted *record.CompactedError
	switch {
	case errors.As(err, &compacted):
		return false, nil // the past that is left says nothing else
	case errors.Is(err, store.ErrFutureRevision):
		return true, nil
	case err != nil:
		return false, err
	}
	return len(kvs) == 0 || kvs[0].Key != w.Key || kvs[0].ModRev != w.Revision || sumOf(kvs[0].Value) != w.Sum, nil
}

// revert takes back what followed the restored revision, and goes on from the position
// that the restored store has: up to there both pasts are the same.
func (p *Projector) revert(ctx, asking context.Context, at history.Position) error {
	to := min(p.stored.position.Revision, at.Revision)
	p.log.Error("history_reverted", "history_at", int64(at.Revision), "to", int64(to))
	if err := p.spool.Clear(); err != nil {
		return err
	}
	if err := p.config.Warehouse.Revert(asking, to); err != nil {
		p.fail(err)
		return err
	}
	p.position, p.mark = to, ""
	kvs, _, err := p.config.Store.Range(asking, record.Root, store.RangeOptions{AtRevision: to})
	var compacted *record.CompactedError
	switch {
	case to == 0:
		return p.beginFresh(ctx, asking, 0, 0, "")
	case errors.As(err, &compacted):
		return p.beginFresh(ctx, asking, to, compacted.Floor, fmt.Sprintf("the store was restored from a backup and compacted at revision %d", int64(compacted.Floor)))
	case err != nil:
		return err
	}
	n := narrate.New(p.config.Cluster)
	n.LoadAll(kvs, to) // rows that were changed since are reverted: they are written again
	return p.open(ctx, asking, n, true)
}
