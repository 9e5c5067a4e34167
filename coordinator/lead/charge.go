package lead

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// groupsOf says to which group of which tree a unit asks to be charged: by its
// own specification, else by its namespace's binding, else by configuration.
func (l *Leader) groupsOf(namespace string, wish api.QuotaDemand) map[string]string {
	configured := l.rules.Namespaces[namespace].Groups
	binding := l.objects.Bindings.Get(namespace)
	if binding == nil && len(wish.Groups) == 0 {
		return configured
	}
	groups := map[string]string{}
	maps.Copy(groups, configured)
	if binding != nil {
		maps.Copy(groups, binding.Object.Spec.Groups)
	}
	maps.Copy(groups, wish.Groups)
	return groups
}

// queuesOverQuota reports whether an allocation over quota waits: by its namespace's
// binding, else by the rule of the namespace.
func (l *Leader) queuesOverQuota(namespace string) bool {
	if b := l.objects.Bindings.Get(namespace); b != nil && b.Object.Spec.Admission != "" {
		return b.Object.Spec.Admission == "queue"
	}
	return l.namespace(namespace).Admission == "queue"
}

// bind brings what a unit is to be charged up to date.
func (l *Leader) bind(u *unit) {
	if u.bound == l.quotas.generation {
		return
	}
	groups := l.groupsOf(u.record.Namespace, u.groups)
	charges := make([]record.Charge, 1, 1+len(groups))
	charges[0] = record.Charge{Tree: quota.Tree, Group: u.Charge.Group, Request: u.Charge.Request}
	for tree, group := range groups {
		charges = append(charges, record.Charge{Tree: tree, Group: l.quotas.group(tree, group), Request: u.Charge.Request})
	}
	slices.SortFunc(charges[1:], func(a, b record.Charge) int { return cmp.Compare(a.Tree, b.Tree) })
	if !slices.EqualFunc(charges, u.charges, func(a, b record.Charge) bool { return a.Tree == b.Tree && a.Group == b.Group }) {
		l.removeConsumer(u)
		u.setCharges(charges)
		if len(charges) > 1 {
			l.addConsumer(u, u.consumer(charges))
		}
	}
	u.setBound(l.quotas.generation)
}

// consumer describes a unit to the trees that its charges name.
func (u *unit) consumer(charges []record.Charge) quota.ConsumerSpec {
	c := quota.ConsumerSpec{ID: u.path, Owner: string(u.record.Tenant)}
	for _, charge := range charges {
		if charge.Tree != quota.Tree {
			c.Demands = append(c.Demands, quota.Demand{
				Tree: charge.Tree, Group: charge.Group, Request: charge.Request,
				Priority: int(u.record.Priority), Type: u.groups.Type, Unpreemptable: u.groups.Unpreemptable,
			})
		}
	}
	return c
}

func (l *Leader) addConsumer(u *unit, c quota.ConsumerSpec) {
	must(l.quotas.trees.AddConsumer(c))
	u.setEnrolled()
}

// removeConsumer lets the trees forget a unit that is not charged.
func (l *Leader) removeConsumer(u *unit) {
	if u.enrolled {
		must(l.quotas.trees.RemoveConsumer(u.path))
		u.clearCharges()
	}
}

// admit charges a unit to its trees, if they and the limits have room for it,
// and nobody has to give way; it returns what is short otherwise. What it
// charged is taken back by takeBack as long as nothing else was tried, and by
// discharge once there is an attempt.
func (l *Leader) admit(u *unit) *sched.Shortage {
	short, until := l.tryCharge(u)
	l.wakeAt(until)
	return short
}

// tryCharge is admit, and the time at which what is short may be over, which is
// for the caller to be woken at.
func (l *Leader) tryCharge(u *unit) (short *sched.Shortage, until time.Time) {
	l.bind(u)
	return l.world().Admit(u.wanted())
}

// undoCharge undoes the charge of a unit that was admitted just now.
func (l *Leader) undoCharge(u *unit) {
	if len(u.charges) > 1 {
		must(l.quotas.trees.UndoAllocateForest(everyTree, u.path))
	}
}

// judge is admit without effect, also on what wakes the unit.
func (l *Leader) judge(u *unit) *sched.Shortage {
	short, _ := l.tryCharge(u)
	if short == nil {
		l.undoCharge(u)
	}
	return short
}

// chargeAttempt charges an attempt from now on. The trees charge its unit since
// that was admitted. Attempts that start together are all charged by one decision:
// beginTogether wakes for them, once all have begun.
func (l *Leader) chargeAttempt(tx resource.TxID, a *attempt) {
	l.charge(tx, a.unit.record.Tenant, a.unit.Charge) // model: mutant UNKNOWN_NOT_CHARGED
	if a.company == nil {
		l.noteCharged(a)
	}
}

// discharge ends an attempt's charge.
func (l *Leader) discharge(a *attempt) {
	l.uncharge(a.machine.ID(), a.unit.record.Tenant)
	l.noteFreed(a)
	l.endSeats(a)
	for _, c := range a.charges {
		if c.Tree == quota.Tree {
			continue
		}
		if t := l.quotas.treeObjects[c.Tree]; t != nil {
			delete(t.detached, a.unit.path)
		}
	}
	if a.unit.enrolled {
		l.quotas.trees.DeallocateForest(everyTree, a.unit.path)
	}
	if a.mischarged { // what the trees know of it is not what it asks for
		l.removeConsumer(a.unit)
	}
}

// chargeRecovered charges the live transactions, in the order of their
// commits.
func (l *Leader) chargeRecovered(live []recovered) error {
	l.updateRuntimes()
	ordered := slices.Clone(live)
	slices.SortFunc(ordered, func(a, b recovered) int {
		return cmp.Or(cmp.Compare(a.attempt.committed, b.attempt.committed), cmp.Compare(a.attempt.machine.ID(), b.attempt.machine.ID()))
	})
	for _, r := range ordered {
		a := r.attempt
		for i, c := range a.charges {
			if slices.ContainsFunc(a.charges[:i], func(d record.Charge) bool { return d.Tree == c.Tree }) {
				return fmt.Errorf("%s: charges[%d]: tree %s is named twice", record.TxKey(a.machine.ID()), i, c.Tree)
			}
			if c.Tree == quota.Tree {
				u := a.unit
				l.charge(a.machine.ID(), u.record.Tenant, quota.Charge{
					Group: c.Group, Request: c.Request, Members: u.Charge.Members, User: u.Charge.User, Class: u.Charge.Class, Terminating: u.Charge.Terminating,
				})
			}
		}
		l.chargeCommitted(a)
	}
	l.loadSeats()
	if err := l.quotas.limits.Check(); err != nil {
		return err
	}
	return l.quotas.trees.Check()
}

// chargeCommitted charges a live transaction to its trees, as its record says, evicting
// nobody. It takes its place as an arrival does, so that sharers are pushed up
// for owners; where that would take room from somebody for good, it is charged
// where there is room, or over quota: in the mode Maintenance to its own group. Where
// a tree does not have the group it is charged to the root, and where there is no tree
// to be charged to that is only told.
func (l *Leader) chargeCommitted(a *attempt) {
	u := a.unit
	c := u.consumer(a.charges)
	if len(c.Demands) == 0 {
		return
	}
	a.clearMischarged()
	for i := range c.Demands {
		d := &c.Demands[i]
		t := l.quotas.treeObjects[d.Tree]
		if t == nil {
			a.setMischarged()
			continue
		}
		d.Group = t.group(d.Group)
		leaf, known := t.nodes[d.Group]
		if delete(t.detached, u.path); !leaf {
			t.detached[u.path] = true
		}
		if !known {
			a.setMischarged()
			d.Group = t.shape.Root
		}
	}
	u.setCharges(a.charges)
	u.setBound(0)
	l.addConsumer(u, c)
	if !a.mischarged && l.chargeAsArrival(u) {
		return
	}
	for _, d := range c.Demands {
		t := l.quotas.treeObjects[d.Tree]
		if t == nil {
			l.out.error("charge_without_tree", "unit", u.path, "tree", d.Tree)
			continue
		}
		r, err := l.quotas.chargeAgain(d.Tree, u.path)
		must(err)
		switch {
		case !r.OK:
			a.setMischarged()
			t.detached[u.path] = true
			l.out.error("charge_lost", "unit", u.path, "tree", d.Tree, "refusal", r.Refusal)
		case r.Forced:
			l.out.warn("charge_over_quota", "unit", u.path, "tree", d.Tree, "node", r.Placed[0].Node)
		}
	}
}

// chargeAsArrival charges a unit as if it arrived now, unless that evicts somebody.
// Its rules are those of the mode Normal in each mode: units that were charged before
// the mode became Maintenance stand as they stood, borrowers included.
func (l *Leader) chargeAsArrival(u *unit) bool {
	must(l.quotas.trees.SetMode(quota.Normal))
	defer func() { must(l.quotas.applyMode()) }()
	r, err := l.quotas.trees.TryAllocateForest(everyTree, u.path)
	must(err)
	if r.OK && len(r.Preempted) == 0 {
		return true
	}
	l.undoCharge(u)
	return false
}

// rechargeUnits charges units anew, by path, whose tree has changed beneath them:
// those that were lost, and those that are not charged as their record says.
func (l *Leader) rechargeUnits(tree string, paths []string) {
	for _, path := range paths {
		u := l.units[path]
		if u == nil || u.attempt == nil || !u.attempt.mischarged && l.quotas.trees.IsAllocated(tree, path) {
			continue
		}
		l.quotas.trees.DeallocateForest(everyTree, path)
		l.removeConsumer(u)
		l.chargeCommitted(u.attempt)
	}
}

// reportOverQuota logs what is charged more than it may be: that blocks
// newcomers and ends nobody.
func (l *Leader) reportOverQuota() {
	for _, key := range slices.Sorted(maps.Keys(l.quotas.resources)) {
		r := l.quotas.resources[key]
		if over := shown.Exceeded(l.quotas.limits.Used(r.Object.Metadata.Namespace, r.Object.Metadata.Name), r.hard); len(over) > 0 {
			l.out.warn("over_quota", "resource_quota", key, "resources", over)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.quotas.treeObjects)) {
		nodes, err := l.quotas.trees.Nodes(name)
		must(err)
		for _, n := range nodes {
			if over := shown.Exceeded(n.Allocated, n.Quota); len(over) > 0 {
				l.out.warn("over_quota", "tree", name, "node", n.Name, "resources", over)
			}
		}
	}
}

// updateRuntimes lets the trees know how long their consumers have run.
func (l *Leader) updateRuntimes() {
	if l.quotas.timed {
		l.quotas.trees.SetNow(l.now)
	}
}
