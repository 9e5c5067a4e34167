package coordinator

import (
	"context"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/shown"
)

// This file adds the facts that the leader alone knows and that are not in the
// store yet, where this coordinator leads: which members of an
// ending gang hold nothing any more, and the state of nodes as their agents'
// streams tell. Each of them goes from here once it is
// written (docs/adr/0033). An overlay that fails is left out: followers show
// none either.

// overlay runs look between two inputs of the leader, where this coordinator
// leads.
func (c *Coordinator) overlay(ctx context.Context, look func(i shown.Index)) {
	if l := c.serving(); l != nil && l.settled(ctx) {
		_ = l.visit(ctx, func() { look(l.Show(time.Now(), l.changes)) })
	}
}

// lacks reports whether the leader knows more of an allocation than its keys.
func lacks(p api.Phase) bool { return p == api.Terminating }

// overlayMembers adds whether members have ended already.
func (c *Coordinator) overlayMembers(ctx context.Context, members []*shown.Member) {
	ends := false
	for _, m := range members {
		ends = ends || lacks(m.Phase())
	}
	if !ends {
		return
	}
	c.overlay(ctx, func(i shown.Index) {
		for _, m := range members {
			if !lacks(m.Phase()) {
				continue
			}
			position := m.Record.Namespace + "/" + m.MemberName(m.Index)
			if now, found := i.Member(position); found && now.Phase() == m.Phase() {
				m.Freed = now.Freed
			}
		}
	})
}

// overlayAllocations is overlayMembers for a page.
func (c *Coordinator) overlayAllocations(ctx context.Context, v *objects.View, page []api.Allocation) {
	var members []*shown.Member
	var at []int
	for i := range page {
		if !lacks(page[i].Status.Phase) {
			continue
		}
		if m, found := v.Member(page[i].Metadata.Namespace + "/" + page[i].Metadata.Name); found {
			members, at = append(members, &m), append(at, i)
		}
	}
	c.overlayMembers(ctx, members)
	for i, m := range members {
		page[at[i]] = *m.Show()
	}
}

// seeNodes shows nodes: the leader's as its view has them.
func seeNodes[T any](ctx context.Context, c *Coordinator, show func(i shown.Index) (T, *api.Status)) (T, error) {
	var none T
	v, err := c.view(ctx)
	if err != nil {
		return none, err
	}
	got, status := show(v)
	if status == nil {
		c.overlay(ctx, func(i shown.Index) {
			if now, refused := show(i); refused == nil {
				got = now
			}
		})
	}
	if status != nil {
		return none, status
	}
	return got, nil
}
