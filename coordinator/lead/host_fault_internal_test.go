package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// taints are the taints of a member's node, as key=value:effect.
func (x *scene) taints(id resource.NodeID) (list []string) {
	for _, t := range x.nodes[id].spec.Taints {
		list = append(list, t.Key+"="+t.Value+":"+t.Effect)
	}
	return list
}

// TestAPrologThatFailsTaintsItsNodeAndIsNoFaultOfTheUnit: the unit waits again, although it
// has no retry.
func TestAPrologThatFailsTaintsItsNodeAndIsNoFaultOfTheUnit(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 1, "")
	x.holdsAll(u)
	node := x.memberNode(u, 0)
	fault := grant.WorkState{Phase: grant.WorkEnded, Code: 126, Reason: grant.PrologFailed, Message: "prolog: the disk is full"}
	x.hear(grant.Worked{Node: node, Tx: u.Attempt.Machine.ID(), States: []grant.WorkState{fault}})
	x.answers()
	if got := x.taints(node); len(got) != 1 || got[0] != "muster.dev/script-failed=prolog:NoSchedule" {
		t.Errorf("the node has the taints %q", got)
	}
	x.settles(u, grant.Tombstone)
	if u.Phase() == api.Failed || u.Record.Retries > 0 {
		t.Errorf("the unit is %s after %d failures, want that it waits without blame", u.Phase(), u.Record.Retries)
	}
}

// TestAnEpilogThatFailsTaintsItsNodeOnce: the unit has succeeded all the same, and a taint
// that is there stays as it is.
func TestAnEpilogThatFailsTaintsItsNodeOnce(t *testing.T) {
	x := newWorkScene(t)
	u := x.submitWork("train", 1, "")
	x.holdsAll(u)
	node := x.memberNode(u, 0)
	fault := grant.WorkState{Phase: grant.WorkEnded, Reason: grant.WorkCompleted, EpilogFault: "epilog: exit status 1"}
	worked := grant.Worked{Node: node, Tx: u.Attempt.Machine.ID(), States: []grant.WorkState{fault}}
	x.hear(worked)
	x.answers()
	x.hear(worked)
	x.answers()
	if got := x.taints(node); len(got) != 1 || got[0] != "muster.dev/script-failed=epilog:NoSchedule" {
		t.Errorf("the node has the taints %q", got)
	}
	x.settles(u, grant.Tombstone)
	if u.Phase() != api.Succeeded {
		t.Errorf("the unit is %s", u.Phase())
	}
}
