package ledger

import (
	"fmt"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Rehost replaces the host from now on: a card was added or is gone, a GPU was
// partitioned anew, CPUs went offline, memory came or went. Call it between an
// Apply and the next Decide.
//
// All grants stay in their states. Their resources are found again by the GPU's
// or instance's UUID, the CPU's number and the NUMA node's number, and their
// members carry the indices of the new inventory. A device that is gone stays
// owned and is numbered behind the present ones; if it comes back while its
// grant lives it is still that grant's. A GPU that went into MIG mode under its
// owner has no free instance until that grant ends. Health is kept by UUID as
// far as an event reported it; other devices have the health of the new
// inventory.
//
// Nothing is journalled: replaying the journal on the new host gives the same
// ledger. But Hash, Pinned devices and SetHealth count by index: the caller
// ends the leader's session, so that the next one begins with the new host.
//
// An error, which means that two grants own one device, CPU or byte on the new
// host, leaves the ledger as it was. No ledger that came about by Decide gives
// one.
func (l *Ledger) Rehost(host *fit.Host) error {
	next := newPlaces(host)
	own := newAccount(next)
	type moved struct {
		g       *entry
		members []Holding
		blocked resource.Assignment
	}
	var all []moved
	for _, tx := range l.sorted(func(g *entry) bool { return g.State != grant.Tombstone }) {
		g := l.grants[tx]
		m := moved{g, next.reindex(g.Members), next.renumbered(g.blocked)}
		if g.State.Holds() {
			for _, member := range m.members {
				if err := own.take(&member.Assignment); err != nil {
					return fmt.Errorf("rehost: %s %s, member %d: %w", g.State, tx, member.Index, err)
				}
			}
		}
		if err := own.take(&m.blocked); err != nil {
			return fmt.Errorf("rehost: %s %s: %w", g.State, tx, err)
		}
		all = append(all, m)
	}
	l.places, l.own, l.hash = next, own, 0
	for _, m := range all {
		m.g.Members, m.g.blocked, m.g.hash = m.members, m.blocked, GrantHash(m.g.Tx, m.members)
		l.hash += m.g.hash
	}
	l.health = l.conditions(next)
	l.own.free.Unhealthy = l.unhealthy()
	return nil
}
