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
// to a fresh specification. old is the specification before, if known.
func (s *Server) admit(ctx context.Context, node resource.NodeID, known bool, old record.NodeSpec, fresh *record.NodeSpec) error {
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
	let := !known || old.Token != "" && fresh.Token != old.Token
	if let {
		fresh.OperatorLabels = withLabels(fresh.OperatorLabels, enrolled.Labels)
	}
	switch {
	case !s.ApproveGrowth:
		fresh.Approved = nil
	case let:
		fresh.Approved = approvalOf(*fresh)
	case old.Approved == nil: // its earlier hardware counts as approved
		fresh.Approved = approvalOf(old)
	default:
		fresh.Approved = old.Approved
	}
	return nil
}

// withLabels puts a token's labels over the operators'. They were judged when the
// token was made; where both are too many the operators' stay.
func withLabels(operators, token map[string]string) map[string]string {
	if len(token) == 0 {
		return operators
	}
	joined := maps.Clone(token)
	if operators != nil {
		joined = maps.Clone(operators)
		maps.Copy(joined, token)
	}
	if api.CheckNodeLabels("labels", joined) != nil {
		return operators
	}
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
