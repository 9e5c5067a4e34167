package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Ledger is one host's grants. It has a single owner.
//
// Invariant (verified by Check): own is the sum of the holding grants'
// resources and of those that the Waiting ones block; hash is the sum of the
// grants' hashes; every victim of a Waiting grant holds and is claimed by it
// alone; the health of a device is that in told, else that in the inventory.
type Ledger struct {
	places *places
	own    account

	health []condition          // by device index
	told   map[string]condition // by UUID, devices that are gone included: the health that events reported

	grants map[resource.TxID]*entry
	spare  []*entry // dropped ones, for new ones
	hash   uint64

	incarnation resource.Incarnation
	startedAt   time.Time
	registered  resource.Revision // 0 = not in this incarnation
	epoch       resource.Epoch
	heard       resource.Revision // highest of the store
	forgotten   Attempt           // newest whose tombstone went
	quarantine  Quarantine
	marks       Marks
	reconciled  resource.Revision // of the last reconciliation since the start
	cordoned    bool
	wish        grant.KubeletPool // the operators' part of the kubelet's pool; never changed
	diskFull    string            // why no promise can be kept; "" while there is room
	memory      string            // why the host is short of memory; "" while it is not

	decision   decision            // the last
	scratch    account             // of a Decide
	assignment resource.Assignment // of a Decide
}

// New returns the ledger of a host that holds nothing. Replay the journal's
// events, then decide Start.
func New(host *fit.Host) *Ledger {
	p := newPlaces(host)
	l := &Ledger{places: p, own: newAccount(p), scratch: newAccount(p), told: map[string]condition{}, grants: map[resource.TxID]*entry{}}
	l.health = l.conditions(p)
	return l
}

// SetDiskFull makes new reservations be refused for a reason, or not where it is
// "". It is of the moment: it is not an event.
func (l *Ledger) SetDiskFull(why string) { l.diskFull = why }

// SetMemoryPressure makes new reservations be refused because the host is short
// of memory, or not where why is "". It is of the moment: it is not an event.
func (l *Ledger) SetMemoryPressure(why string) { l.memory = why }

// Registration returns the store's revision of this incarnation's
// registration; 0 means that nothing may be answered yet.
func (l *Ledger) Registration() resource.Revision { return l.registered }

// Incarnation returns the present one.
func (l *Ledger) Incarnation() resource.Incarnation { return l.incarnation }

// Epoch returns the highest epoch seen.
func (l *Ledger) Epoch() resource.Epoch { return l.epoch }

// Heard returns the highest revision of the store that this ledger has seen: of
// records, registrations and elections.
func (l *Ledger) Heard() resource.Revision { return l.heard }

// Lookup returns the grant of a transaction.
func (l *Ledger) Lookup(tx resource.TxID) (Grant, bool) {
	g, ok := l.grants[tx]
	if !ok {
		return Grant{}, false
	}
	return g.Grant, true
}

// Len counts grants, tombstones included.
func (l *Ledger) Len() int { return len(l.grants) }

// Next returns the earliest deadline: when the owner should decide the next
// Tick. ok is false where nothing is pending, and before the registration, when
// nothing is due.
func (l *Ledger) Next() (at time.Time, ok bool) {
	if !l.quarantine.IsZero() || l.registered == 0 {
		return time.Time{}, false
	}
	for _, g := range l.grants {
		if g.State == grant.Held || g.State == grant.Tombstone {
			continue
		}
		if !ok || g.Deadline.Before(at) {
			at, ok = g.Deadline, true
		}
	}
	return at, ok
}

// sorted returns the transactions that pick accepts, in ascending order.
func (l *Ledger) sorted(pick func(*entry) bool) []resource.TxID {
	var list []resource.TxID
	for tx, g := range l.grants {
		if pick(g) {
			list = append(list, tx)
		}
	}
	slices.Sort(list)
	return list
}

// Check recomputes the free resources, the hash and the claims from the grants
// and names the first difference. It is for tests and audits: its cost grows
// with the host and the grants.
func (l *Ledger) Check() error {
	if err := l.places.host.Check(l.own.free); err != nil {
		return err
	}
	own := newAccount(l.places)
	var hash uint64
	for _, tx := range l.sorted(func(*entry) bool { return true }) {
		g := l.grants[tx]
		hash += g.hash
		if err := l.checkGrant(g, &own); err != nil {
			return fmt.Errorf("ledger: %s %s: %w", g.State, tx, err)
		}
	}
	if hash != l.hash {
		return fmt.Errorf("ledger: hash is %016x, the grants give %016x", l.hash, hash)
	}
	if difference := l.own.differs(&own); difference != "" {
		return fmt.Errorf("ledger: %s", difference)
	}
	if health := l.conditions(l.places); !slices.Equal(health, l.health) || l.own.free.Unhealthy != l.unhealthy() {
		return fmt.Errorf("ledger: health is %v and the set of unhealthy devices %x, events and inventory say %v", l.health, l.own.free.Unhealthy, health)
	}
	return nil
}

// checkGrant verifies one grant and takes its resources from own.
func (l *Ledger) checkGrant(g *entry, own *account) error {
	if (len(g.Members) == 0) != (g.State == grant.Tombstone) {
		return fmt.Errorf("it has %d members", len(g.Members))
	}
	if n := len(g.Members); n > 0 && g.UnitMembers > 0 && g.Members[n-1].Index >= g.UnitMembers {
		return fmt.Errorf("it has member %d of a unit of %d", g.Members[n-1].Index, g.UnitMembers)
	}
	if want := GrantHash(g.Tx, g.Members); g.State != grant.Tombstone && g.hash != want || g.State == grant.Tombstone && g.hash != 0 {
		return fmt.Errorf("its hash is %016x, its members give %016x", g.hash, want)
	}
	if g.State.Holds() {
		for i := range g.Members {
			if err := own.take(&g.Members[i].Assignment); err != nil {
				return err
			}
		}
	}
	if g.State != grant.Waiting {
		if len(g.Victims) > 0 || !g.blocked.IsZero() {
			return fmt.Errorf("it has victims %v and blocks %+v", g.Victims, g.blocked)
		}
		return nil
	}
	for _, v := range g.Victims {
		if victim := l.grants[v]; victim == nil || !victim.State.Holds() || victim.claimed != g.Tx {
			return fmt.Errorf("its victim %s does not hold, or is not claimed by it", v)
		}
	}
	return own.take(&g.blocked)
}
