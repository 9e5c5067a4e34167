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
		text := inSet(b.Set) + bound(b)
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
		return noneHas(b, "has", "does not have") + fmt.Sprintf(" the label %s=%s", b.Label.Key, b.Label.Value)
	case whatif.NoMatch:
		return noneHas(b, "has", "does not have") + " all labels that the node selector and the node affinity ask for"
	case whatif.NotTolerated:
		return fmt.Sprintf("%s with the right labels %s taints that are not tolerated (%s)", theNodes(b), verb(b.Nodes, "has", "have"), b.Taint)
	case whatif.NoModel:
		return noneHas(b, "has a", "has no") + " GPU of model " + b.Model
	case whatif.NoGPUMemory:
		return fmt.Sprintf("no GPU of %s has %s of memory, the largest has %s", theNodes(b),
			resource.FormatBytes(resource.Bytes(b.Want)), resource.FormatBytes(resource.Bytes(b.Have)))
	case whatif.NodeTooSmall:
		return fmt.Sprintf("a member wants %s, and %s %s", amount(b.Resource, b.Want), noneHas(b, "has more than", "has no more than"), amount(b.Resource, b.Have))
	case whatif.NoNode:
		text := noneHas(b, "could hold", "could not hold") + " a member, even when empty"
		if len(b.Reasons) > 0 {
			text += ": " + words(&b.Reasons[0], b.Reasons[0].Have, &resource.Request{})
		}
		return text
	case whatif.NodesTooSmall:
		if b.Resource != "" {
			return fmt.Sprintf("all members together want %s, and %s %s %s", amount(b.Resource, b.Want), theNodes(b), verb(b.Nodes, "has", "have"), amount(b.Resource, b.Have))
		}
		return fmt.Sprintf("%s must run at once, and %s %s no more than %d", count(int(b.Want), "member"), theNodes(b), verb(b.Nodes, "holds", "hold"), b.Have)
	case whatif.TooWide:
		return fmt.Sprintf("its members need at least %d nodes, and one transaction of the store takes %d (etcd's --max-txn-ops)", b.Want, b.Have)
	case whatif.OverLimit:
		if b.User != "" {
			return fmt.Sprintf("it wants %s, and the resource quota %s allows %s to each user", amount(b.Resource, b.Want), b.Limit, amount(b.Resource, b.Have))
		}
		return fmt.Sprintf("it wants %s, and the resource quota %s allows %s in all", amount(b.Resource, b.Want), b.Limit, amount(b.Resource, b.Have))
	case whatif.NoTree:
		return fmt.Sprintf("the quota tree %s, to whose group %s it is charged, does not exist", b.Tree, b.Group)
	case whatif.OverTree:
		return overTree(b)
	}
	return string(b.Code)
}

// theNodes names the nodes that a bound is about.
func theNodes(b *whatif.Bound) string {
	if b.Nodes == 1 {
		return "the only node" + usable(b)
	}
	return fmt.Sprintf("the %d nodes%s", b.Nodes, usable(b))
}

// noneHas says that no node of a bound does something: does is the verb of none of several
// nodes, doesNot that of the only one.
func noneHas(b *whatif.Bound, does, doesNot string) string {
	if b.Nodes == 1 {
		return theNodes(b) + " " + doesNot
	}
	return fmt.Sprintf("none of %s %s", theNodes(b), does)
}

// usable says of the nodes of a bound that there are others.
func usable(b *whatif.Bound) string {
	if b.LeftOut == 0 {
		return ""
	}
	return " that it may use"
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
