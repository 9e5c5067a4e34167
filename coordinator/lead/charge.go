package lead

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/grant"
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
func (l *Leader) bind(u *work.Unit) {
	if u.Bound == l.quotas.Generation() {
		return
	}
	groups := l.groupsOf(u.Record.Namespace, u.Groups)
	charges := make([]record.Charge, 1, 1+len(groups))
	charges[0] = record.Charge{Tree: quota.Tree, Group: u.Charge.Group, Request: u.Charge.Request}
	for tree, group := range groups {
		charges = append(charges, record.Charge{Tree: tree, Group: l.quotas.Group(tree, group), Request: u.Charge.Request})
	}
	slices.SortFunc(charges[1:], func(a, b record.Charge) int { return cmp.Compare(a.Tree, b.Tree) })
	if !slices.EqualFunc(charges, u.Charges, func(a, b record.Charge) bool {
		return a.Tree == b.Tree && a.Group == b.Group && maps.Equal(a.Request, b.Request)
	}) {
		l.removeConsumer(u)
		u.SetCharges(charges)
		if len(charges) > 1 {
			l.addConsumer(u, u.Consumer(charges))
		}
	}
	u.SetBound(l.quotas.Generation())
}

func (l *Leader) addConsumer(u *work.Unit, c quota.ConsumerSpec) {
	l.quotas.Enroll(c)
	u.SetEnrolled()
}

// removeConsumer lets the trees forget a unit that is not charged.
func (l *Leader) removeConsumer(u *work.Unit) {
	if u.Enrolled {
		l.quotas.Forget(u.Path)
		u.ClearCharges()
	}
}

// admitOn is admit of a unit that has these devices.
func (l *Leader) admitOn(u *work.Unit, models resource.Vector) *sched.Shortage {
	l.bind(u)
	short, until := l.world().Admit(u.Wanted().OnModels(models))
	l.wakeAt(until)
	return short
}

// modelsOf sums the GPUs that members have by the names that quotas count them under; nil
// where the unit is charged to the model that its request names.
func (l *Leader) modelsOf(u *work.Unit, found map[resource.NodeID][]grant.Member) resource.Vector {
	if !u.Demand.TakesAnyModel() {
		return nil
	}
	var plan []place.Choice
	for id, members := range found {
		at := &cluster.Node{}
		if n := l.nodes[id]; n != nil {
			at = &n.view
		}
		for _, m := range members {
			plan = append(plan, place.Choice{Index: m.Index, Node: at, Assignment: m.Assignment})
		}
	}
	return u.Demand.Models(plan)
}

// tryCharge is admit, and the time at which what is short may be over, which is
// for the caller to be woken at.
func (l *Leader) tryCharge(u *work.Unit) (short *sched.Shortage, until time.Time) {
	l.bind(u)
	return l.world().Admit(u.Wanted())
}

// undoCharge undoes the charge of a unit that was admitted just now.
func (l *Leader) undoCharge(u *work.Unit) {
	if len(u.Charges) > 1 {
		l.quotas.Undo(u.Path)
	}
}

// judge is admit without effect, also on what wakes the unit.
func (l *Leader) judge(u *work.Unit) *sched.Shortage {
	short, _ := l.tryCharge(u)
	if short == nil {
		l.undoCharge(u)
	}
	return short
}

// chargeAttempt charges an attempt from now on. The trees charge its unit since
// that was admitted. Attempts that start together are all charged by one decision:
// beginTogether wakes for them, once all have begun.
func (l *Leader) chargeAttempt(tx resource.TxID, a *work.Attempt) {
	c := a.Unit.Charge
	c.Request = a.Charges[0].Request                           // with the models of its place
	l.quotas.Charge(tx, a.Unit.Record.Tenant, c, l.post.Now()) // model: mutant UNKNOWN_NOT_CHARGED
	if a.Company == nil {
		l.noteCharged(a)
	}
}

// discharge ends an attempt's charge.
func (l *Leader) discharge(a *work.Attempt) {
	l.quotas.Uncharge(a.Machine.ID(), a.Unit.Record.Tenant, l.post.Now())
	l.noteFreed(a)
	l.endSeats(a)
	for _, c := range a.Charges {
		if c.Tree == quota.Tree {
			continue
		}
		l.quotas.Reattach(c.Tree, a.Unit.Path)
	}
	if a.Unit.Enrolled {
		l.quotas.Release(a.Unit.Path)
	}
	if a.Mischarged { // what the trees know of it is not what it asks for
		l.removeConsumer(a.Unit)
	}
}

// noteStarted ends the reserved part of an attempt's charge once the attempt has started.
func (l *Leader) noteStarted(a *work.Attempt) {
	if a.Ready.AtMillis != 0 {
		l.quotas.Start(a.Machine.ID())
	}
}

// chargeRecovered charges the live transactions, in the order of their
// commits.
func (l *Leader) chargeRecovered(live []recovered) error {
	l.updateRuntimes()
	ordered := slices.Clone(live)
	slices.SortFunc(ordered, func(a, b recovered) int {
		return cmp.Or(cmp.Compare(a.attempt.Committed, b.attempt.Committed), cmp.Compare(a.attempt.Machine.ID(), b.attempt.Machine.ID()))
	})
	for _, r := range ordered {
		a := r.attempt
		for i, c := range a.Charges {
			if slices.ContainsFunc(a.Charges[:i], func(d record.Charge) bool { return d.Tree == c.Tree }) {
				return fmt.Errorf("%s: charges[%d]: tree %s is named twice", record.TxKey(a.Machine.ID()), i, c.Tree)
			}
			if c.Tree == quota.Tree {
				u := a.Unit
				l.quotas.Charge(a.Machine.ID(), u.Record.Tenant, quota.Charge{
					Group: c.Group, Request: c.Request, Members: int64(u.Record.Held()), User: u.Charge.User, Class: u.Charge.Class, Terminating: u.Charge.Terminating,
				}, l.post.Now())
				l.noteStarted(a)
			}
		}
		l.chargeCommitted(a)
	}
	l.loadSeats()
	if err := l.quotas.Limits().Check(); err != nil {
		return err
	}
	return l.quotas.Trees().Check()
}

// chargeCommitted charges a live transaction to its trees, as its record says, evicting
// nobody. It takes its place as an arrival does, so that sharers are pushed up
// for owners; where that would take room from somebody for good, it is charged
// where there is room, or over quota: in the mode Maintenance to its own group. Where
// a tree does not have the group it is charged to the root, and where there is no tree
// to be charged to that is only told.
func (l *Leader) chargeCommitted(a *work.Attempt) {
	u := a.Unit
	c := u.Consumer(a.Charges)
	if len(c.Demands) == 0 {
		return
	}
	a.ClearMischarged()
	if !l.quotas.Locate(&c) {
		a.SetMischarged()
	}
	u.SetCharges(a.Charges)
	u.SetBound(0)
	l.addConsumer(u, c)
	if !a.Mischarged && l.quotas.Arrive(u.Path) {
		return
	}
	for _, d := range c.Demands {
		switch r := l.quotas.ChargeCommitted(d.Tree, u.Path); {
		case r.Absent:
			l.post.Error("charge_without_tree", "unit", u.Path, "tree", d.Tree)
		case !r.OK:
			a.SetMischarged()
			l.post.Error("charge_lost", "unit", u.Path, "tree", d.Tree, "refusal", r.Refusal)
		case r.Forced:
			l.post.Warn("charge_over_quota", "unit", u.Path, "tree", d.Tree, "node", r.Placed[0].Node)
		}
	}
}

// rechargeUnits charges units anew, by path, whose tree has changed beneath them:
// those that were lost, and those that are not charged as their record says.
func (l *Leader) rechargeUnits(tree string, paths []string) {
	for _, path := range paths {
		u := l.work.Units[path]
		if u == nil || u.Attempt == nil || !u.Attempt.Mischarged && l.quotas.Trees().IsAllocated(tree, path) {
			continue
		}
		l.quotas.Release(path)
		l.removeConsumer(u)
		l.chargeCommitted(u.Attempt)
	}
}

// reportOverQuota logs what is charged more than it may be: that blocks
// newcomers and ends nobody.
func (l *Leader) reportOverQuota() {
	for _, e := range l.quotas.Exceeded() {
		if e.Tree == "" {
			l.post.Warn("over_quota", "resource_quota", e.Quota, "resources", e.Resources)
		} else {
			l.post.Warn("over_quota", "tree", e.Tree, "node", e.Node, "resources", e.Resources)
		}
	}
}

// updateRuntimes lets the trees know how long their consumers have run.
func (l *Leader) updateRuntimes() {
	l.quotas.SetNow(l.post.Now())
}
