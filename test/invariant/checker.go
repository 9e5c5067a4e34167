package invariant

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Checker holds what a harness has told it of a cluster. One goroutine uses it
// at a time. Every method that returns violations returns those that its call
// has shown, in an order that depends on the calls alone.
type Checker struct {
	harness  Harness
	required map[Rule]Facts
	found    []Violation

	state   *state
	before  map[resource.TxID]record.Tx             // of this batch: the records that it writes, before it
	touched map[resource.TxID]bool                  // of this batch: records and index entries
	stood   map[resource.NodeID]record.NodeIdentity // of this batch: the identities that it writes, before it
	tenures []tenure
	writes  map[resource.Revision]Write // that landed in revisions which are still to come
	quotas  map[string]map[string]*limit
	limits  map[string]resource.Vector // configured
	seen    map[string]bool            // namespaces that were ever charged
	trees   map[string]*tree
	// unlimited: the trees were in Maintenance once.
	unlimited bool

	gone, back, adopted map[resource.TxID]bool
	restored            bool
	adopting            bool
	noClaims, renumbers bool

	hosts    map[resource.NodeID]Host
	cards    map[resource.NodeID]map[string]bool
	omitted  map[resource.NodeID]bool
	lost     map[resource.NodeID]Loss
	freed    map[resource.NodeID]map[resource.TxID]bool
	admitted map[resource.TxID]admission
	// admissions counts the calls of Admitted.
	admissions int
	nominated  map[resource.TxID][]resource.NodeID
	wished     map[resource.TxID]bool
	suspended  map[record.UnitPath]bool // objects, by namespace and name
	demands    map[record.UnitPath]Wants
	graces     graces
	promises   map[resource.NodeID]*promises
	attempts   map[attempt]resource.TxID
}

// New returns a checker that knows nothing yet.
func New(h Harness) *Checker {
	c := &Checker{
		harness: h, required: map[Rule]Facts{}, state: newState(), before: map[resource.TxID]record.Tx{}, touched: map[resource.TxID]bool{},
		stood:  map[resource.NodeID]record.NodeIdentity{},
		writes: map[resource.Revision]Write{}, quotas: map[string]map[string]*limit{}, limits: map[string]resource.Vector{}, seen: map[string]bool{},
		trees: map[string]*tree{}, hosts: map[resource.NodeID]Host{}, cards: map[resource.NodeID]map[string]bool{}, omitted: map[resource.NodeID]bool{},
		lost: map[resource.NodeID]Loss{}, freed: map[resource.NodeID]map[resource.TxID]bool{}, admitted: map[resource.TxID]admission{},
		nominated: map[resource.TxID][]resource.NodeID{}, wished: map[resource.TxID]bool{}, suspended: map[record.UnitPath]bool{}, demands: map[record.UnitPath]Wants{}, graces: newGraces(),
		promises: map[resource.NodeID]*promises{}, attempts: map[attempt]resource.TxID{}, adopted: map[resource.TxID]bool{},
	}
	for _, d := range Rules() {
		c.required[d.Rule] = d.Needs
	}
	return c
}

// report notes a violation of a rule that the harness gives the facts for.
func (c *Checker) report(v Violation, format string, args ...any) {
	needs, known := c.required[v.Rule]
	if !known {
		panic(fmt.Sprintf("invariant: rule %q is not in Rules", v.Rule))
	}
	if needs&^c.harness.Gives != 0 {
		return
	}
	v.Revision, v.Text = c.state.revision, fmt.Sprintf(format, args...)
	c.found = append(c.found, v)
}

// taken returns the violations of a call.
func (c *Checker) taken() []Violation {
	found := c.found
	c.found = nil
	return found
}

// of is a violation of a rule by objects.
func of[T ~string](r Rule, objects ...T) Violation {
	v := Violation{Rule: r}
	for _, o := range objects {
		v.Objects = append(v.Objects, string(o))
	}
	return v
}

// Apply takes the next revision.
func (c *Checker) Apply(b Batch) []Violation {
	clear(c.before)
	clear(c.touched)
	clear(c.stood)
	leader := c.state.leader()
	c.state.revision = max(c.state.revision, b.Revision)
	for _, change := range b.Changes {
		change.apply(c)
	}
	for _, tx := range slices.Sorted(maps.Keys(c.before)) {
		c.checkRecord(b.At, tx, leader)
	}
	for _, tx := range slices.Sorted(maps.Keys(c.touched)) {
		c.checkIndex(tx)
	}
	if len(c.before) > 0 {
		c.checkDevices()
		c.checkQuotas()
		c.checkUnits()
	}
	c.checkTold()
	c.reign(b.Revision)
	return c.taken()
}

// checkRecord checks one record that the batch has written.
func (c *Checker) checkRecord(at time.Time, tx resource.TxID, leader resource.Epoch) {
	r, exists := c.state.records[tx]
	c.checkEdge(tx, r, exists, leader)
	c.checkUndecided(tx, r)
	if !exists {
		c.checkNamed(tx)
		return
	}
	c.state.decided[tx] = r.State
	switch r.State {
	case grant.RecordCommitted:
		if c.before[tx].State == grant.RecordCommitted {
			c.checkLoss(tx, r)
			c.checkMembers(tx, r)
			return
		}
		switch {
		case leader == r.Epoch:
		case c.restored || c.adopting:
			c.Adopted(tx)
		default:
			c.report(of(I12Commits, tx), "%s is COMMITTED in epoch %d, while %d leads", tx, r.Epoch, leader)
		}
		c.checkIncarnations(tx, r)
		c.checkMembers(tx, r)
		c.checkGroup(tx, r)
		c.checkReplacement(tx, r)
		c.checkDemand(tx, r)
		c.checkNominated(tx, r)
	case grant.RecordEvicting:
		c.evicting(at, tx, r)
		c.checkVictim(tx, r)
	case grant.RecordReleasing:
		c.releasing(tx, r)
	case grant.RecordReleased:
		c.checkEnd(tx, r)
		c.checkSwap(tx, r)
	}
}

// checkEdge checks the step that a record has taken. A record that was collected
// may come back as ABORTED, for an agent that asks again, and as COMMITTED only
// where an operator adopts a grant that was revived. A new record names the unit of the
// transaction, an ABORTED record too.
func (c *Checker) checkEdge(tx resource.TxID, r record.Tx, exists bool, leader resource.Epoch) {
	before, after := c.before[tx].State, r.State
	if unit, _, _, err := tx.Attempt(); err == nil && exists && before == grant.RecordAbsent && r.UnitUID != unit {
		c.report(of(I6Unit, string(tx), string(r.UnitUID)), "%s, an attempt of unit %s, becomes %s for unit %q", tx, unit, after, r.UnitUID)
	}
	switch was := c.state.decided[tx]; {
	case !exists && !before.Terminal():
		c.report(of(I11Deleted, tx), "%s is deleted while it is %q", tx, before)
	case !exists:
	case !before.MayBecome(after):
		c.report(of(I11Edges, tx), "%s goes from %q to %s", tx, before, after)
	case before != grant.RecordAbsent || was == grant.RecordAbsent || after != grant.RecordCommitted:
	case !c.revived(r) || r.Epoch == leader:
		c.report(of(I11Again, tx), "%s was %s and becomes %s", tx, was, after)
	}
}

// revived reports whether a record may be of grants that had ended before the
// backup of a restored store: every member's host has lost the end with its disk,
// or lies. Such a grant looks like one whose record the store has lost.
func (c *Checker) revived(r record.Tx) bool {
	return c.restored && !slices.ContainsFunc(r.Members, func(m record.Placement) bool {
		return !c.omitted[m.Node] && c.lost[m.Node] != LostRecords
	})
}

// checkSwap checks that EVICTING becomes RELEASED together with the commit of
// the preemptor.
func (c *Checker) checkSwap(tx resource.TxID, r record.Tx) {
	if c.before[tx].State != grant.RecordEvicting {
		return
	}
	was, together := c.before[r.By]
	if !together || was.State != grant.RecordAbsent || c.state.records[r.By].State != grant.RecordCommitted {
		c.report(of(I11Swap, tx, r.By), "%s goes from EVICTING to RELEASED without the commit of %q", tx, r.By)
	}
}

// checkIncarnations checks that a commit counts on the memory of each member's
// agent as it is registered, and on no node that is fenced, before the revision:
// a Txn may commit, and fence one of the nodes. A node that lies says of its own
// incarnation what it likes.
func (c *Checker) checkIncarnations(tx resource.TxID, r record.Tx) {
	for _, m := range r.Members {
		was, changes := c.stood[m.Node]
		if !changes {
			was = c.state.identities[m.Node]
		}
		if !c.omitted[m.Node] && (was.Incarnation != m.Incarnation || was.Fenced) {
			c.report(of(I3Incarnations, string(tx), string(m.Node)), "%s is COMMITTED on %s as %s, which is registered as %s, fenced %t", tx, m.Node, m.Incarnation, was.Incarnation, was.Fenced)
		}
	}
}

// checkMembers checks that a record has every member of its unit once.
func (c *Checker) checkMembers(tx resource.TxID, r record.Tx) {
	u, known := c.state.byUID[r.UnitUID]
	if !known {
		return // its record cannot be read
	}
	have := memberIndices(r)
	var want []int
	for i := range max(u.Members, 1) {
		if !u.HasLost(i) {
			want = append(want, i)
		}
	}
	if !slices.Equal(have, want) {
		c.report(of(I3Members, string(tx), string(r.UnitUID)), "%s is COMMITTED with the members %v, its unit has %d", tx, have, len(want))
	}
}

func memberIndices(r record.Tx) []int {
	indices := make([]int, 0, len(r.Members))
	for _, m := range r.Members {
		indices = append(indices, m.Member)
	}
	slices.Sort(indices)
	return indices
}

// checkIndex compares the nodes' index of a transaction with its record.
func (c *Checker) checkIndex(tx resource.TxID) {
	want := map[resource.NodeID]bool{}
	if r := c.state.records[tx]; r.State.Charged() { // others are not listed
		for _, m := range r.Members {
			want[m.Node] = true
		}
	}
	if !maps.Equal(want, c.state.index[tx]) {
		have := slices.Sorted(maps.Keys(c.state.index[tx]))
		c.report(of(I13Index, tx), "%s (%q) has members on %v, the index lists it at %v", tx, c.state.records[tx].State, slices.Sorted(maps.Keys(want)), have)
	}
}

// checkUnits checks that no unit, by UID and by name, has two live records.
func (c *Checker) checkUnits() {
	byUID, byPath := map[resource.UnitUID]resource.TxID{}, map[record.UnitPath]resource.TxID{}
	for tx, r := range c.live() {
		if other, twice := byUID[r.UnitUID]; twice {
			c.report(of(I6Unit, string(r.UnitUID), string(other), string(tx)), "unit %s is live in %s and in %s", r.UnitUID, other, tx)
		} else if other, twice := byPath[r.Unit]; twice {
			c.report(of(I6Unit, r.Unit.String(), string(other), string(tx)), "unit %s is live in %s and in %s", r.Unit, other, tx)
		}
		byUID[r.UnitUID], byPath[r.Unit] = tx, tx
	}
}

// live yields the records that are charged, in order.
func (c *Checker) live() func(yield func(resource.TxID, record.Tx) bool) {
	return func(yield func(resource.TxID, record.Tx) bool) {
		for _, tx := range slices.Sorted(maps.Keys(c.state.records)) {
			if r := c.state.records[tx]; r.State.Charged() && !yield(tx, r) {
				return
			}
		}
	}
}

// Texts are the violations, one a line.
func Texts(violations []Violation) string {
	var b strings.Builder
	for _, v := range violations {
		b.WriteString(v.String())
		b.WriteByte('\n')
	}
	return b.String()
}
