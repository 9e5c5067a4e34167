package coordinator

import (
	"context"

	"github.com/musterd/muster/coordinator/store"
)

// forget takes note that the store was restored from a backup: what this
// coordinator knows of it never was. The present term ends, and one that has
// been won but not begun does not begin; only then does the store answer again.
// The restored store's candidates count, this one's last term among them: the
// next begins when its lease has run out.
func (c *Coordinator) forget(ctx context.Context, back *store.WentBackError) {
	c.past.Add(1) // before the term is looked at: see begin
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

// begin opens a term unless the store has gone back since its candidacy.
func (c *Coordinator) begin(l *leader, term *store.Leadership, past int64) {
	c.open(l)
	if c.past.Load() != past {
		term.End(store.ErrWentBack)
	}
}
