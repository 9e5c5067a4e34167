package charges

import (
	"fmt"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// Reasons are the constraints behind a shortage, the one to show first; none
// for nil.
func (q *Book) Reasons(s *sched.Shortage) []resource.Reason {
	switch {
	case s == nil:
		return nil
	case s.Limits != nil:
		reasons := make([]resource.Reason, len(s.Limits))
		for i, short := range s.Limits {
			reasons[i] = short.Reason()
		}
		return reasons
	case s.Absent != nil:
		return []resource.Reason{{
			Code: resource.ReasonQuota, Detail: fmt.Sprintf("quota tree %s, to whose group %s it is to be charged, does not exist", s.Absent.Tree, s.Absent.Group),
		}}
	case s.Victims != nil:
		return []resource.Reason{{Code: resource.ReasonQuota, Detail: NeedsVictims(s.Victims)}}
	}
	return []resource.Reason{q.RefusalReason(s.Refusal)}
}

// NeedsVictims says how many units would have to give way. It names none: they
// may be other tenants'.
func NeedsVictims(victims []string) string {
	units := "units"
	if len(victims) == 1 {
		units = "unit"
	}
	return fmt.Sprintf("its quota is in use by others: %d %s must give way first", len(victims), units)
}

// RefusalReason words a tree's refusal with the numbers of the node: Want is
// the request, Have what the node has left.
func (q *Book) RefusalReason(r quota.Refusal) resource.Reason {
	reason := r.Reason()
	of := fmt.Sprintf("node %s of quota tree %s", r.Node, r.Tree)
	var limit int64
	var node quota.NodeSpec
	if t := q.treeObjects[r.Tree]; t != nil {
		node = t.spec.Nodes[r.Node]
	}
	switch r.Code {
	case quota.OverQuota:
		limit = node.Quota[r.Resource]
	case quota.OverCap:
		limit, of = node.Cap[r.Resource], "cap of "+of
	case quota.OverOwner:
		limit, of = node.PerOwner[r.Resource], "limit per owner of "+of
	case quota.OverBorrow:
		limit, of = node.Borrowing[r.Resource], "borrowing limit of "+of
	case quota.UnknownGroup:
		reason.Detail = fmt.Sprintf("quota tree %s has no group %s", r.Tree, r.Node)
		return reason
	case quota.NotALeaf:
		reason.Detail = fmt.Sprintf("group %s of quota tree %s is not a leaf", r.Node, r.Tree)
		return reason
	default:
		return reason
	}
	if r.Resource != "" {
		reason.Detail = fmt.Sprintf("%s (%s)", quota.Sentence(r.Resource, limit, r.Want, resource.SaturatingSub(limit, r.Have)), of)
	}
	return reason
}
