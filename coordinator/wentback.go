package coordinator

import (
	"context"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
)

// onStoreRestored records that the store was restored from a backup: this
// coordinator's cache of it is void. The present term ends, and one that has
// been won but not begun does not begin; only then does the store answer again.
// The restored store's candidates count, this one's last term among them: the
// next begins when its lease has run out.
func (c *Coordinator) onStoreRestored(ctx context.Context, back *record.WentBackError) {
	c.config.Era.WentBack(back)
	c.past.Add(1) // before the term is looked at: see begin
	c.mu.Lock()
	c.back, c.deposers = back, nil
	c.mu.Unlock()
	if l := c.term.Load(); l != nil {
		l.commit.deposed(back)
		select {
		case <-l.ended:
		case <-ctx.Done():
			return
		}
	}
	c.store.Acknowledge(back)
}

// begin opens a term unless the store has gone back since its candidacy, or the feature
// level has changed.
func (c *Coordinator) begin(l *term, term *store.Leadership, past int64) {
	c.open(l)
	if c.past.Load() != past {
		term.End(record.ErrWentBack)
	}
	if l.level != c.store.Level() || c.store.Refusal() != nil {
		term.End(store.ErrLevelChanged)
	}
}

// tellRestored has the first term after a restoration that this coordinator has
// noticed begin its account with the restoration. past is as in begin: a term
// that does not begin logs nothing.
func (c *Coordinator) tellRestored(l *term, past int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.back == nil || c.past.Load() != past {
		return
	}
	l.apply(lead.StoreRestored{Why: decisions.Restored{By: "coordinator " + c.config.ID, Before: c.back.Had, After: c.back.Has}})
	c.back = nil
}
