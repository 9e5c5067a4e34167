package ledger

import (
	"testing"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestProcessesStartOnlyInWhatIsHeld: a change of one fact at a time.
func TestProcessesStartOnlyInWhatIsHeld(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Ledger, *entry, *grant.Start)
		want   string
	}{
		"it is held":              {func(*Ledger, *entry, *grant.Start) {}, ""},
		"a newer leader":          {func(_ *Ledger, _ *entry, s *grant.Start) { s.Epoch = 8 }, ""},
		"an older leader":         {func(_ *Ledger, _ *entry, s *grant.Start) { s.Epoch = 6 }, resource.ReasonStaleEpoch},
		"no registration":         {func(l *Ledger, _ *entry, _ *grant.Start) { l.registered = 0 }, resource.ReasonUnregistered},
		"in quarantine":           {func(l *Ledger, _ *entry, _ *grant.Start) { l.quarantine = Quarantine{Heard: 9, Store: 2} }, resource.ReasonUnregistered},
		"another transaction":     {func(_ *Ledger, _ *entry, s *grant.Start) { s.Tx = "b" }, resource.ReasonInvalidRequest},
		"it is only reserved":     {func(_ *Ledger, g *entry, _ *grant.Start) { g.State = grant.Reserved }, resource.ReasonInvalidRequest},
		"it is under notice":      {func(_ *Ledger, g *entry, _ *grant.Start) { g.State = grant.Evicting }, resource.ReasonInvalidRequest},
		"it is stopping":          {func(_ *Ledger, g *entry, _ *grant.Start) { g.State = grant.Stopping }, resource.ReasonInvalidRequest},
		"it has ended":            {func(_ *Ledger, g *entry, _ *grant.Start) { g.State, g.Members = grant.Tombstone, nil }, resource.ReasonInvalidRequest},
		"an orphan":               {func(_ *Ledger, g *entry, _ *grant.Start) { g.Origin = OriginOrphan }, resource.ReasonInvalidRequest},
		"a member of other hosts": {func(_ *Ledger, _ *entry, s *grant.Start) { s.Members[0].Index = 1 }, resource.ReasonInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			g := &entry{Grant: Grant{Tx: "a", State: grant.Held, Members: []Holding{{Index: 3}}}}
			l := &Ledger{grants: map[resource.TxID]*entry{"a": g}, registered: 5, epoch: 7}
			s := grant.Start{Tx: "a", Epoch: 7, Members: []grant.StartMember{{Index: 3}}}
			c.change(l, g, &s)
			_, reasons := l.MayStart(s)
			var got string
			if len(reasons) > 0 {
				got = reasons[0].Code
			}
			if got != c.want {
				t.Errorf("reasons %v, want %q", reasons, c.want)
			}
		})
	}
}
