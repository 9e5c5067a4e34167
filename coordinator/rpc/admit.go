package rpc

import (
	"cmp"
	"context"
	"maps"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file bounds the changes that a registration makes to a node
// (docs/adr/0015): the operators' settings stay, and capacity beyond the approved
// one waits where the cluster asks for approval.

// admit adds the labels of the node's bootstrap token and the approved capacity
// to a fresh specification. old is the specification before, the zero value where
// there is none.
func (s *Server) admit(ctx context.Context, node resource.NodeID, old record.NodeSpec, fresh *record.NodeSpec) error {
	key := record.EnrolledKey(node)
	kv, found, _, err := s.Store.Get(ctx, key)
	if err != nil {
		return err
	}
	var enrolled record.Enrolled
	if found {
		if enrolled, err = record.Decode[record.Enrolled](key, kv.Value); err != nil {
			return err
		}
		fresh.Token = cmp.Or(enrolled.Token, old.Token)
	}
	// let in by an operator's bootstrap token since the last registration
	let := !old.HasRegistered() || old.Token != "" && fresh.Token != old.Token
	if let {
		below, over := fresh.OperatorLabels, enrolled.Labels
		if old.Expected != nil { // an operator has named this node; the token may be for many
			below, over = over, below
		}
		if joined := joinLabels(below, over); api.CheckNodeLabels("labels", joined) == nil { // else too many
			fresh.OperatorLabels = joined
		}
	}
	switch {
	case !s.ApproveGrowth:
		fresh.Approved = nil
	case let:
		fresh.Approved = approvalOf(*fresh)
		fresh.Approved.Amounts = admission.AtMostExpected(fresh.Approved.Amounts, fresh.Expected)
	case old.Approved == nil: // its earlier hardware counts as approved
		fresh.Approved = approvalOf(old)
	default:
		fresh.Approved = old.Approved
	}
	return nil
}

// joinLabels puts some labels of operators over others, such as those of a token
// over those of the node.
func joinLabels(below, over map[string]string) map[string]string {
	if len(below) == 0 {
		return over
	}
	joined := maps.Clone(below)
	maps.Copy(joined, over)
	return joined
}

// approvalOf approves the capacity of a specification.
func approvalOf(spec record.NodeSpec) *record.Capacity {
	c := record.Capacity(admission.RegisteredCapacity(spec))
	return &c
}

// report logs, once per change, labels that are ignored and capacity that waits.
func (s *Server) report(node resource.NodeID, old, fresh record.NodeSpec) {
	if now := strings.Join(fresh.IgnoredLabels, ","); now != "" && now != strings.Join(old.IgnoredLabels, ",") {
		s.Logger.Warn("node_labels_ignored", "node", node, "labels", now, "reason", "reserved, or no labels")
	}
	if now := admission.UnapprovedOf(fresh); !now.IsZero() && now != admission.UnapprovedOf(old) {
		s.Logger.Warn("node_awaits_approval", "node", node, "reason", now.Reason, "growth", now.Message)
	}
}
