package lead

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/why"
	"github.com/musterd/muster/resource"
)

// quotaExplanation tells where a unit stands on its trees.
func (l *Leader) quotaExplanation(u *work.Unit) *api.QuotaExplanation {
	s := &api.QuotaExplanation{Kind: "QuotaExplanation", Consumer: u.Record.Namespace + "/" + u.Record.Name, Phase: u.Phase(), Placements: []api.QuotaPlacement{}}
	charges := u.Charges
	switch {
	case u.Attempt != nil:
		charges = u.Attempt.Charges
	case u.Waiting() && !u.Life.IsBeingAdopted():
		s.Reasons = l.quotas.Reasons(l.judge(u))
		charges = u.Charges
	}
	for _, d := range u.Consumer(charges).Demands {
		d.Group = l.quotas.Group(d.Tree, d.Group) // a record keeps the name of its commit
		s.Placements = append(s.Placements, placementOf(quota.PlacementView{Demand: d, Group: d.Group}))
	}
	if u.Enrolled {
		view, err := l.quotas.Trees().Consumer(u.Path)
		must(err)
		for i, seat := range view.Placements {
			group := s.Placements[i].Group // as it was asked for, even where the tree does not have it
			s.Placements[i] = placementOf(seat)
			s.Placements[i].Group = group
		}
	}
	s.Summary = summarizeExplanation(s)
	return s
}

// placementOf shows a place on a tree.
func placementOf(v quota.PlacementView) api.QuotaPlacement {
	seat := api.QuotaPlacement{
		Tree: v.Tree, Group: v.Demand.Group, Request: api.Amounts(v.Request), Priority: int32(v.Priority), Unpreemptable: v.Unpreemptable,
	}
	if v.Allocated {
		seat.Node, seat.BorrowsFrom, seat.ReclaimableBy = v.Node, v.BorrowsFrom, v.ReclaimableBy
	}
	return seat
}

// summarizeExplanation says it in one sentence.
func summarizeExplanation(s *api.QuotaExplanation) string {
	switch {
	case len(s.Reasons) > 0:
		return fmt.Sprintf("%s is not charged: %s", s.Consumer, s.Reasons[0].Detail)
	case len(s.Placements) == 0:
		return s.Consumer + " is charged to no tree"
	}
	return s.Consumer + " " + summarizePlacements(s.Placements)
}

// summarizePlacements says tree by tree where a unit is counted.
func summarizePlacements(seats []api.QuotaPlacement) string {
	parts := make([]string, len(seats))
	for i, seat := range seats {
		switch {
		case seat.Node == "":
			parts[i] = fmt.Sprintf("on tree %s belongs to group %s and is not charged", seat.Tree, seat.Group)
		case seat.Node == seat.Group:
			parts[i] = fmt.Sprintf("on tree %s is charged to its own group %s", seat.Tree, seat.Group)
		case len(seat.BorrowsFrom) > 0:
			parts[i] = fmt.Sprintf("on tree %s belongs to group %s and borrows from %s at node %s", seat.Tree, seat.Group, strings.Join(seat.BorrowsFrom, ", "), seat.Node)
		default:
			parts[i] = fmt.Sprintf("on tree %s belongs to group %s and is charged to node %s above it", seat.Tree, seat.Group, seat.Node)
		}
	}
	return strings.Join(parts, "; ")
}

// trialPrefix begins the names of consumers that are only tried: no unit's path
// has a question mark.
const trialPrefix = "?"

// tryQuota charges a consumer to its trees and takes that back.
func (l *Leader) tryQuota(spec quota.ConsumerSpec, reader why.Viewer) (*api.QuotaDryRun, *api.Status) {
	trial := &api.QuotaDryRun{Kind: "QuotaDryRun"}
	trees, name := l.quotas.Trees(), spec.ID
	if len(spec.Demands) == 0 {
		return nil, api.Errorf(422, "spec.trees: the consumer asks nothing of any tree")
	}
	for i, d := range spec.Demands {
		if !l.quotas.IsOpen(d.Tree) {
			return nil, api.Errorf(422, "spec.trees[%d].treeName: quota tree %s does not exist", i, d.Tree)
		}
	}
	if status := l.misspelt(spec); status != nil {
		return nil, status
	}
	spec.ID = trialPrefix + name
	if err := trees.AddConsumer(spec); err != nil {
		return nil, api.Errorf(422, "%v", err)
	}
	l.updateRuntimes()
	r, err := trees.AdmitForest(charges.Forest, spec.ID)
	must(err)
	trial.Admitted = r.OK && len(r.Preempted) == 0 // until somebody can be evicted for it
	if r.OK {
		l.showDryRun(trial, spec.ID, r, reader)
	} else {
		trial.Reasons = []resource.Reason{l.quotas.RefusalReason(r.Refusal)}
	}
	must(trees.UndoAllocateForest(charges.Forest, spec.ID))
	must(trees.RemoveConsumer(spec.ID))
	trial.Summary = summarizeDryRun(name, trial, charges.NeedsVictims(r.Preempted))
	return trial, nil
}

// showDryRun tells where a consumer that was admitted would be, and what that
// would do to others.
func (l *Leader) showDryRun(trial *api.QuotaDryRun, id string, r quota.Result, reader why.Viewer) {
	var victims []why.Work
	for _, v := range l.work.UnitsOf(r.Preempted) {
		victims = append(victims, work.WorkOf(v))
	}
	trial.Victims = reader.Names(victims)
	var others []why.Work
	for _, m := range l.quotas.Trees().Moves() {
		switch u := l.work.Units[m.Consumer]; {
		case m.Consumer == id || m.From == "" || m.To == "":
		case u != nil && !reader.Sees(u.Record.Namespace):
			others = append(others, work.WorkOf(u))
		default:
			trial.Moved = append(trial.Moved, fmt.Sprintf("%s on %s: %s to %s", m.Consumer, m.Tree, m.From, m.To))
		}
	}
	trial.Moved = append(trial.Moved, reader.Names(others)...)
	view, err := l.quotas.Trees().Consumer(id)
	must(err)
	for _, seat := range view.Placements {
		trial.Placements = append(trial.Placements, placementOf(seat))
	}
}

func summarizeDryRun(name string, trial *api.QuotaDryRun, needs string) string {
	switch {
	case len(trial.Victims) > 0:
		return fmt.Sprintf("%s would have to wait: %s", name, needs+": "+shown.Names(trial.Victims))
	case !trial.Admitted:
		return fmt.Sprintf("%s would be refused: %s", name, trial.Reasons[0].Detail)
	}
	return fmt.Sprintf("%s would be admitted: %s", name, summarizePlacements(trial.Placements))
}
