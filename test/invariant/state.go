package invariant

import (
	"maps"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// state is the store as of a revision, with what clients and operators know of
// it: all that a restored backup puts back.
type state struct {
	revision   resource.Revision
	records    map[resource.TxID]record.Tx
	decided    map[resource.TxID]grant.RecordState // the last state of each record, collected ones too
	units      map[record.UnitPath]record.Unit
	byUID      map[resource.UnitUID]record.Unit // deleted ones too
	order      map[string]Order                 // by key
	jobs       map[string]record.Job
	index      map[resource.TxID]map[resource.NodeID]bool
	identities map[resource.NodeID]record.NodeIdentity
	candidates map[string]resource.Epoch
	told       map[record.UnitPath]resource.UnitUID // acknowledged to the client
	ended      map[record.UnitPath]bool             // the client has asked for the end
}

func newState() *state {
	return &state{
		records: map[resource.TxID]record.Tx{}, decided: map[resource.TxID]grant.RecordState{}, units: map[record.UnitPath]record.Unit{},
		byUID: map[resource.UnitUID]record.Unit{}, order: map[string]Order{}, jobs: map[string]record.Job{},
		index: map[resource.TxID]map[resource.NodeID]bool{}, identities: map[resource.NodeID]record.NodeIdentity{},
		candidates: map[string]resource.Epoch{}, told: map[record.UnitPath]resource.UnitUID{}, ended: map[record.UnitPath]bool{},
	}
}

func (s *state) clone() *state {
	c := &state{
		revision: s.revision, records: maps.Clone(s.records), decided: maps.Clone(s.decided), units: maps.Clone(s.units), byUID: maps.Clone(s.byUID),
		order: maps.Clone(s.order), jobs: maps.Clone(s.jobs), index: map[resource.TxID]map[resource.NodeID]bool{}, identities: maps.Clone(s.identities),
		candidates: maps.Clone(s.candidates), told: maps.Clone(s.told), ended: maps.Clone(s.ended),
	}
	for tx, nodes := range s.index {
		c.index[tx] = maps.Clone(nodes)
	}
	return c
}

// leader is the epoch in force, 0 without one.
func (s *state) leader() resource.Epoch {
	first := resource.Epoch(0)
	for _, epoch := range s.candidates {
		if first == 0 || epoch < first {
			first = epoch
		}
	}
	return first
}

// Mark is what a checker knows of the store at one moment.
type Mark struct{ state *state }

// Mark returns the present state, for a backup that is made now.
func (c *Checker) Mark() Mark { return Mark{c.state.clone()} }

// Restore puts the store back to a backup. What clients were told since then is
// forgotten, and so is each word that a transaction is freed which lives again.
func (c *Checker) Restore(m Mark) {
	c.gone, c.back, c.restored = map[resource.TxID]bool{}, map[resource.TxID]bool{}, true
	for tx, r := range c.state.records {
		if then := m.state.records[tx]; r.State.Charged() && !then.State.Charged() {
			c.gone[tx] = true
		}
	}
	for tx, then := range m.state.records {
		now := c.state.records[tx]
		if then.State.Charged() && (now.State != then.State || len(now.LostMembers) != len(then.LostMembers)) {
			c.back[tx] = true
			for _, freed := range c.freed {
				delete(freed, tx)
			}
		}
	}
	c.state = m.state.clone()
	for len(c.tenures) > 0 && c.tenures[len(c.tenures)-1].from > c.state.revision {
		c.tenures = c.tenures[:len(c.tenures)-1]
	}
	clear(c.writes)
}

// Gone reports whether a transaction was live when the store was restored, and
// is not in the backup.
func (c *Checker) Gone(tx resource.TxID) bool { return c.gone[tx] }

// HasGone reports whether any transaction is Gone.
func (c *Checker) HasGone() bool { return len(c.gone) > 0 }

// Back reports whether the backup lists a transaction as live that had ended, was
// ending or had lost members since, when the store was restored.
func (c *Checker) Back(tx resource.TxID) bool { return c.back[tx] }

// LastState is the last state of a transaction's record, also of a collected one.
func (c *Checker) LastState(tx resource.TxID) grant.RecordState { return c.state.decided[tx] }

// Revision is the last revision that the checker has seen.
func (c *Checker) Revision() resource.Revision { return c.state.revision }

// Leader is the epoch in force, 0 without one.
func (c *Checker) Leader() resource.Epoch { return c.state.leader() }

func (o Order) apply(c *Checker) {
	if delete(c.state.order, o.Key); !o.Gone {
		c.state.order[o.Key] = o
	}
}

func (j Job) apply(c *Checker) {
	if delete(c.state.jobs, j.Name); j.New != nil {
		c.state.jobs[j.Name] = *j.New
	}
}

func (u Unit) apply(c *Checker) {
	if delete(c.state.units, u.Path); u.New != nil {
		c.state.units[u.Path], c.state.byUID[u.New.UID] = *u.New, *u.New
	}
}

func (i Identity) apply(c *Checker) {
	if _, twice := c.stood[i.Node]; !twice {
		c.stood[i.Node] = c.state.identities[i.Node]
	}
	if delete(c.state.identities, i.Node); i.New != nil {
		c.state.identities[i.Node] = *i.New
	}
}

func (i Index) apply(c *Checker) {
	c.touched[i.Tx] = true
	nodes := c.state.index[i.Tx]
	switch {
	case i.Gone:
		if delete(nodes, i.Node); len(nodes) == 0 {
			delete(c.state.index, i.Tx)
		}
	case nodes == nil:
		c.state.index[i.Tx] = map[resource.NodeID]bool{i.Node: true}
	default:
		nodes[i.Node] = true
	}
}

func (k Candidate) apply(c *Checker) {
	if delete(c.state.candidates, k.Key); !k.Gone {
		c.state.candidates[k.Key] = k.Epoch
	}
}

func (r Record) apply(c *Checker) {
	c.touched[r.Tx] = true
	if _, twice := c.before[r.Tx]; !twice {
		c.before[r.Tx] = c.state.records[r.Tx]
	}
	if delete(c.state.records, r.Tx); r.New != nil {
		c.state.records[r.Tx] = *r.New
	}
}
