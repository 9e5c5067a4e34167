package why

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/resource"
)

// OutlookOf words whether a unit can ever run: never are the bounds, the one to
// show first; now says that there is room at this moment.
func OutlookOf(never []whatif.Bound, now bool) *api.Outlook {
	switch {
	case len(never) > 0:
		b := &never[0]
		o := &api.Outlook{Can: api.CanNever, Reason: &resource.Reason{Code: string(b.Code), Resource: b.Resource}}
		if b.Resource != "" {
			o.Reason.Want, o.Reason.Have = b.Want, b.Have
		}
		text := bound(b)
		o.Reason.Detail = text
		switch b.Code {
		case whatif.OverLimit, whatif.NoTree, whatif.OverTree:
			o.Message = "Never within the quota as it is: " + text + "."
		default:
			o.Message = "Never on the nodes registered now, absent ones included: " + text + "."
		}
		return o
	case now:
		return &api.Outlook{Can: api.CanNow, Message: "It can run now."}
	}
	return &api.Outlook{Can: api.CanLater, Message: "It can run on the nodes registered now, absent ones included, once enough is free."}
}

// bound words one bound.
func bound(b *whatif.Bound) string {
	switch b.Code {
	case whatif.NoNodes:
		return "no node is registered"
	case whatif.NoLabel:
		return fmt.Sprintf("none of the %s has the label %s=%s", count(b.Nodes, "node"), b.Label.Key, b.Label.Value)
	case whatif.NoMatch:
		return fmt.Sprintf("none of the %s has all labels that the node selector and the node affinity ask for", count(b.Nodes, "node"))
	case whatif.NotTolerated:
		return fmt.Sprintf("the %s with the right labels %s taints that are not tolerated (%s)", count(b.Nodes, "node"), verb(b.Nodes, "has", "have"), b.Taint)
	case whatif.NoModel:
		return fmt.Sprintf("none of the %s has a GPU of model %s", count(b.Nodes, "node"), b.Model)
	case whatif.NoGPUMemory:
		return fmt.Sprintf("no GPU of the %s has %s of memory, the greatest has %s", count(b.Nodes, "node"),
			resource.FormatBytes(resource.Bytes(b.Want)), resource.FormatBytes(resource.Bytes(b.Have)))
	case whatif.NodeTooSmall:
		return fmt.Sprintf("a member wants %s, and none of the %s has more than %s", amount(b.Resource, b.Want), count(b.Nodes, "node"), amount(b.Resource, b.Have))
	case whatif.NoNode:
		text := fmt.Sprintf("none of the %s could hold a member, even when empty", count(b.Nodes, "node"))
		if len(b.Reasons) > 0 {
			text += ": " + words(&b.Reasons[0], b.Reasons[0].Have, &resource.Request{})
		}
		return text
	case whatif.NodesTooSmall:
		if b.Resource != "" {
			return fmt.Sprintf("all members together want %s, and the %s have %s", amount(b.Resource, b.Want), count(b.Nodes, "node"), amount(b.Resource, b.Have))
		}
		return fmt.Sprintf("%s are to run at once, and the %s hold no more than %d", count(int(b.Want), "member"), count(b.Nodes, "node"), b.Have)
	case whatif.TooWide:
		return fmt.Sprintf("its members need at least %d nodes, and one transaction of the store takes %d (etcd's --max-txn-ops)", b.Want, b.Have)
	case whatif.OverLimit:
		return fmt.Sprintf("it wants %s, and the resource quota %s allows %s in all", amount(b.Resource, b.Want), b.Limit, amount(b.Resource, b.Have))
	case whatif.NoTree:
		return fmt.Sprintf("the quota tree %s, to whose group %s it is charged, does not exist", b.Tree, b.Group)
	case whatif.OverTree:
		return overTree(b)
	}
	return string(b.Code)
}

// overTree words the refusal of a tree that nobody else is charged to.
func overTree(b *whatif.Bound) string {
	r := &b.Refusal
	switch r.Code {
	case quota.UnknownGroup:
		return fmt.Sprintf("the quota tree %s has no group %s", r.Tree, r.Node)
	case quota.NotALeaf:
		return fmt.Sprintf("the group %s of the quota tree %s is not a leaf", r.Node, r.Tree)
	}
	return fmt.Sprintf("it wants %s, and %s allows %s", amount(b.Resource, b.Want), limitOf(r), amount(b.Resource, b.Have))
}

// limitOf names the limit of a tree.
func limitOf(r *quota.Refusal) string {
	node := fmt.Sprintf("node %s of quota tree %s", r.Node, r.Tree)
	switch r.Code {
	case quota.OverCap:
		return "the cap of " + node
	case quota.OverOwner:
		return "the limit per owner of " + node
	case quota.OverBorrow:
		return "the borrowing limit of " + node
	}
	return "the quota of " + node
}
