package rpc

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

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
	case old.Approved == nil: // whatever it had was approved
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
	c := record.Capacity(RegisteredCapacity(spec))
	return &c
}

// RegisteredCapacity is the capacity that a node has registered.
func RegisteredCapacity(spec record.NodeSpec) admission.Capacity {
	c := admission.Capacity{Amounts: spec.Capacity}
	if len(spec.Topology.GPUModel) > 0 {
		c.Models = map[string]int{}
		for _, at := range spec.Topology.GPUModel {
			c.Models[spec.Topology.GPUModels[at]]++
		}
	}
	return c
}

// Unapproved is the registered capacity of a node beyond the approved one.
func Unapproved(spec record.NodeSpec) admission.Growth {
	if spec.Approved == nil {
		return admission.Growth{}
	}
	return admission.Unapproved(RegisteredCapacity(spec), admission.Capacity(*spec.Approved))
}

// RegisteredAs is the part of a specification that labels are derived from.
func RegisteredAs(node resource.NodeID, spec record.NodeSpec) admission.Registered {
	r := admission.Registered{
		Node: node, AssumeDead: time.Duration(spec.AssumeDeadMillis) * time.Millisecond, Devices: spec.Topology.GPUs, Memory: spec.Topology.GPUMemory,
	}
	if limit, err := time.ParseDuration(spec.Labels[api.AssumeDeadLabel]); err == nil && r.AssumeDead == 0 {
		r.AssumeDead = limit // registered with an older coordinator, which kept it there alone
	}
	if t := spec.Topology; len(t.GPUModel) > 0 {
		r.Product = t.GPUModels[t.GPUModel[0]]
	} else if len(t.GPUModels) > 0 {
		r.Product = t.GPUModels[0]
	}
	return r
}

// report logs, once per change, labels that are ignored and capacity that waits.
func (s *Server) report(node resource.NodeID, old, fresh record.NodeSpec) {
	if now := strings.Join(fresh.IgnoredLabels, ","); now != "" && now != strings.Join(old.IgnoredLabels, ",") {
		s.Logger.Warn("node_labels_ignored", "node", node, "labels", now, "reason", "reserved, or no labels")
	}
	if now := Unapproved(fresh); !now.IsZero() && now != Unapproved(old) {
		s.Logger.Warn("node_awaits_approval", "node", node, "reason", now.Reason, "growth", now.Message)
	}
}
