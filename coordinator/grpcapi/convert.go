package grpcapi

import (
	"encoding/json"

	"github.com/musterd/muster/api"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

func all[T, M any](items []T, message func(*T) *M) []*M {
	messages := make([]*M, len(items))
	for i := range items {
		messages[i] = message(&items[i])
	}
	return messages
}

// named turns a map's keys from one kind of string into another.
func named[B, A ~string](m map[A]string) map[B]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[B]string, len(m))
	for k, v := range m {
		out[B(k)] = v
	}
	return out
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func toMeta(m *api.ObjectMeta) *musterv1.ObjectMeta {
	return &musterv1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, Uid: m.UID, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		Labels: m.Labels, Annotations: m.Annotations,
	}
}

// fromMeta leaves out the fields that the server alone sets.
func fromMeta(m *musterv1.ObjectMeta) api.ObjectMeta {
	return api.ObjectMeta{
		Name: m.GetName(), Namespace: m.GetNamespace(), ResourceVersion: m.GetResourceVersion(), Labels: m.GetLabels(), Annotations: m.GetAnnotations(),
	}
}

func toResourceQuota(q *api.ResourceQuota) *musterv1.ResourceQuota {
	m := &musterv1.ResourceQuota{
		Metadata: toMeta(&q.Metadata), Hard: named[string](q.Spec.Hard), Soft: named[string](q.Spec.Soft), Scopes: q.Spec.Scopes,
		Status: &musterv1.ResourceQuotaStatus{
			Hard: named[string](q.Status.Hard), Used: named[string](q.Status.Used),
			Utilization: named[string](q.Status.Utilization), Trend: named[string](q.Status.Trend),
			Conditions: all(q.Status.Conditions, func(c *api.Condition) *musterv1.Condition {
				return &musterv1.Condition{
					Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
				}
			}),
		},
	}
	if q.Spec.ScopeSelector != nil {
		m.ScopeSelector = all(q.Spec.ScopeSelector.MatchExpressions, func(e *api.ScopeExpression) *musterv1.ScopeExpression {
			return &musterv1.ScopeExpression{ScopeName: e.ScopeName, Operator: e.Operator, Values: e.Values}
		})
	}
	return m
}

func fromResourceQuota(m *musterv1.ResourceQuota) *api.ResourceQuota {
	q := &api.ResourceQuota{
		Metadata: fromMeta(m.GetMetadata()),
		Spec: api.ResourceQuotaSpec{
			Hard: named[resource.Name](m.GetHard()), Soft: named[resource.Name](m.GetSoft()), Scopes: m.GetScopes(),
		},
	}
	if len(m.GetScopeSelector()) > 0 {
		q.Spec.ScopeSelector = &api.ScopeSelector{}
		for _, e := range m.GetScopeSelector() {
			q.Spec.ScopeSelector.MatchExpressions = append(q.Spec.ScopeSelector.MatchExpressions,
				api.ScopeExpression{ScopeName: e.GetScopeName(), Operator: e.GetOperator(), Values: e.GetValues()})
		}
	}
	return q
}

func toQuotaTree(t *api.QuotaTree) *musterv1.QuotaTree {
	s := &t.Status
	return &musterv1.QuotaTree{
		Metadata: toMeta(&t.Metadata), Spec: t.Spec,
		Status: &musterv1.QuotaTreeStatus{
			Root: s.Root, Dangling: s.Dangling, OtherRoots: s.OtherRoots, Orphans: s.Orphans, Cyclic: s.Cyclic, Detached: s.Detached,
			Nodes: all(s.Nodes, func(n *api.QuotaNodeStatus) *musterv1.QuotaNode {
				return &musterv1.QuotaNode{
					Name: n.Name, Parent: n.Parent, Depth: int32(n.Depth), Hard: n.Hard, Leaf: n.Leaf,
					Quota: named[string](n.Quota), Allocated: named[string](n.Allocated), Own: named[string](n.Own),
					Borrowed: named[string](n.Borrowed), Lent: named[string](n.Lent), OverQuota: texts(n.OverQuota), Consumers: n.Consumers,
				}
			}),
		},
	}
}

func fromQuotaTree(m *musterv1.QuotaTree) *api.QuotaTree {
	t := &api.QuotaTree{Metadata: fromMeta(m.GetMetadata())}
	if len(m.GetSpec()) > 0 {
		t.Spec = json.RawMessage(m.GetSpec())
	}
	return t
}

func toQuotaForest(f *api.QuotaForest) *musterv1.QuotaForest {
	return &musterv1.QuotaForest{Metadata: toMeta(&f.Metadata), Trees: f.Spec.Trees}
}

func fromQuotaForest(m *musterv1.QuotaForest) *api.QuotaForest {
	return &api.QuotaForest{Metadata: fromMeta(m.GetMetadata()), Spec: api.QuotaForestSpec{Trees: m.GetTrees()}}
}

func toQuotaBinding(b *api.QuotaBinding) *musterv1.QuotaBinding {
	return &musterv1.QuotaBinding{Metadata: toMeta(&b.Metadata), Forest: b.Spec.Forest, Groups: b.Spec.Groups, Admission: b.Spec.Admission}
}

func fromQuotaBinding(m *musterv1.QuotaBinding) *api.QuotaBinding {
	return &api.QuotaBinding{
		Metadata: fromMeta(m.GetMetadata()),
		Spec:     api.QuotaBindingSpec{Forest: m.GetForest(), Groups: m.GetGroups(), Admission: m.GetAdmission()},
	}
}

func toPlacement(s *api.QuotaPlacement) *musterv1.QuotaPlacement {
	return &musterv1.QuotaPlacement{
		Tree: s.Tree, Group: s.Group, Request: named[string](s.Request), Priority: s.Priority, Unpreemptable: s.Unpreemptable,
		Node: s.Node, BorrowsFrom: s.BorrowsFrom, ReclaimableBy: s.ReclaimableBy,
	}
}

func toExplanation(s *api.QuotaExplanation) *musterv1.QuotaExplanation {
	return &musterv1.QuotaExplanation{
		Consumer: s.Consumer, Phase: string(s.Phase), Placements: all(s.Placements, toPlacement), Reasons: wire.ToReasons(s.Reasons), Summary: s.Summary,
	}
}

func toDryRun(t *api.QuotaDryRun) *musterv1.QuotaDryRun {
	return &musterv1.QuotaDryRun{
		Admitted: t.Admitted, Placements: all(t.Placements, toPlacement), Victims: t.Victims, Moved: t.Moved,
		Reasons: wire.ToReasons(t.Reasons), Summary: t.Summary,
	}
}

func toReclaim(r *api.QuotaReclaim) *musterv1.QuotaReclaim {
	return &musterv1.QuotaReclaim{
		Tree: r.Tree, DryRun: r.DryRun, Nodes: all(r.Nodes, toOverdraft), Remaining: all(r.Remaining, toOverdraft), Summary: r.Summary,
		Units: all(r.Units, func(u *api.QuotaReclaimed) *musterv1.QuotaReclaimed {
			return &musterv1.QuotaReclaimed{Kind: u.Kind, Consumer: u.Consumer, Node: u.Node, Request: named[string](u.Request), Priority: u.Priority}
		}),
	}
}

func toOverdraft(o *api.QuotaOverdraft) *musterv1.QuotaOverdraft {
	return &musterv1.QuotaOverdraft{Node: o.Node, Over: named[string](o.Over)}
}
