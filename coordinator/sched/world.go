package sched

import (
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/preempt"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
)

// World is the state that decisions read, and change as they decide.
type World struct {
	State *cluster.State
	// Refresh brings the occupants of State up to date before they are read; nil
	// where they always are.
	Refresh func()
	Limits  *quota.Limits
	Trees   *quota.Manager
	// Forest is the one forest of the trees: a unit is charged to all trees that it
	// names, or to none.
	Forest string
	// Closed are trees whose deletion is under way: no unit is charged to them.
	Closed map[string]bool
	// Evictable, where it is set, has the holders of State that may be evicted now. It
	// serves an owner whose occupants, and the readiness and health of whose nodes, stay
	// as they are; without it each decision makes an index of its own.
	Evictable *preempt.Index
	// MaxOps is the most operations that the store takes in one transaction.
	MaxOps int
}

// occupied returns the State with all occupants as they are now.
func (w *World) occupied() *cluster.State {
	if w.Refresh != nil {
		w.Refresh()
	}
	return w.State
}

// Admit charges a unit to its trees, if they and the limits have room for it, and
// no unit has to give way; it returns the shortage otherwise, and the time from which
// on the trees may answer otherwise though nothing else has happened, zero for
// never. The consumer of the unit is registered, if the unit names trees. Undo takes
// the charge back as long as nothing else was tried. While the trees are in the mode
// Maintenance they have room for each unit whose groups exist; the limits count in
// both modes.
func (w *World) Admit(u *Unit) (short *Shortage, until time.Time) {
	if short := w.Limits.Admit(&u.Charge); short != nil {
		return &Shortage{Limits: short}, until
	}
	if len(u.Charges) == 1 {
		return nil, until
	}
	if u.takesAnyModel() { // the trees may know it with the models of an attempt
		must(w.Trees.SetRequest(u.Key.Path, u.Charges[1].Request))
	}
	for i, c := range u.Charges[1:] {
		if w.Closed[c.Tree] || !w.Trees.HasTree(c.Tree) {
			return &Shortage{Absent: &u.Charges[1+i]}, until
		}
	}
	r, err := w.Trees.AdmitForest(w.Forest, u.Key.Path)
	must(err)
	switch {
	case !r.OK:
		return &Shortage{Refusal: r.Refusal}, w.Trees.ProtectedUntil()
	case len(r.Preempted) > 0:
		until = w.Trees.ProtectedUntil() // others may be named from then on
		short := &Shortage{Victims: slices.Clone(r.Preempted)}
		w.Undo(u)
		return short, until
	}
	return nil, until
}

// Undo takes back the charge of a unit that was admitted just now.
func (w *World) Undo(u *Unit) {
	if len(u.Charges) > 1 {
		must(w.Trees.UndoAllocateForest(w.Forest, u.Key.Path))
	}
}

// TreesOf are the quota trees among charges.
func TreesOf(charges []record.Charge) []string {
	var trees []string
	for _, c := range charges {
		if c.Tree != quota.Tree {
			trees = append(trees, c.Tree)
		}
	}
	return trees
}

// must is for calls of the quota manager that only a broken invariant makes fail.
func must(err error) {
	if err != nil {
		panic("sched: " + err.Error())
	}
}
