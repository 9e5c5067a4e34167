package whatif

import (
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// quotas raises the one limit or quota that is short.
func (h *helper) quotas() {
	o := h.Try(h.unit)
	if o.Evidence == nil || o.Evidence.Short == nil {
		return
	}
	switch short := o.Evidence.Short; {
	case len(short.Limits) == 1:
		h.raiseLimit(short.Limits[0])
	case short.Refusal.Code != quota.NotRefused:
		h.raiseQuota(short.Refusal)
	}
}

// raiseLimit raises a limit of the namespace to what the unit brings it to.
func (h *helper) raiseLimit(s quota.Shortage) {
	before, known := h.Limits.Limit(h.unit.Charge.Group, s.Limit)
	if !known {
		return
	}
	raised, to := before, resource.SaturatingAdd(s.Used, s.Requested)
	if s.User == "" {
		raised.Hard = before.Hard.Clone()
		raised.Hard[s.Resource] = to
	} else {
		raised.PerUser = before.PerUser.Clone()
		raised.PerUser[s.Resource] = to
	}
	h.Limits.SetLimit(raised)
	if h.startsNow() {
		h.add(Hint{Code: RaiseLimit, Limit: s.Limit, User: s.User, Resource: s.Resource, From: s.Hard, To: to})
	}
	h.Limits.SetLimit(before)
}

// raiseQuota raises the limit of a tree that refuses the unit, by what is short.
func (h *helper) raiseQuota(r quota.Refusal) {
	cache, err := h.Trees.Cache(r.Tree)
	if err != nil || r.Resource == "" {
		return
	}
	node, known := cache.Node(r.Node)
	amounts := limitOf(&node, r.Code)
	if !known || amounts == nil {
		return
	}
	from := amounts[r.Resource]
	to := resource.SaturatingAdd(from, resource.SaturatingSub(r.Want, r.Have))
	amounts[r.Resource] = to
	trees := h.Trees
	h.Trees = trees.Snapshot().Fork() // an update of a tree cannot be taken back
	defer func() { h.Trees = trees }()
	cache, err = h.Trees.Cache(r.Tree)
	must(err)
	if cache.SetNode(r.Node, node) != nil {
		return
	}
	_, err = h.Trees.UpdateTree(r.Tree)
	must(err)
	if h.startsNow() {
		h.add(Hint{Code: RaiseQuota, Quota: r, Resource: r.Resource, From: from, To: to})
	}
}

// limitOf is the vector of a node that a refusal is about, nil for none.
func limitOf(n *quota.NodeSpec, code quota.RefusalCode) resource.Vector {
	switch code {
	case quota.OverQuota:
		if n.Quota == nil {
			n.Quota = resource.Vector{}
		}
		return n.Quota
	case quota.OverCap:
		return n.Cap
	case quota.OverOwner:
		return n.PerOwner
	case quota.OverBorrow:
		return n.Borrowing
	case quota.NotRefused, quota.UnknownGroup, quota.NotALeaf, quota.Overflow:
	}
	return nil
}
