package grpcapi_test

import (
	"context"

	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// remote reaches a service's quotas over gRPC.
type remote struct{ client musterv1.QuotasClient }

// got turns an answer back, and a refusal into the Status that it was.
func got[M, T any](m *M, err error, from func(*M) *T) (*T, error) {
	if err == nil {
		return from(m), nil
	}
	s := status.Convert(err)
	for _, d := range s.Details() {
		if r, ok := d.(*musterv1.Refusal); ok {
			return nil, &api.Status{Kind: "Status", Code: int(r.GetCode()), Reason: r.GetReason(), Message: s.Message()}
		}
	}
	return nil, err
}

func named[B, A ~string](m map[A]string) map[B]string {
	out := make(map[B]string, len(m))
	for k, v := range m {
		out[B(k)] = v
	}
	return out
}

func toMeta(m api.ObjectMeta) *musterv1.ObjectMeta {
	return &musterv1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, ResourceVersion: m.ResourceVersion, Labels: m.Labels, Annotations: m.Annotations}
}

func fromMeta(m *musterv1.ObjectMeta) api.ObjectMeta {
	return api.ObjectMeta{
		Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUid(), ResourceVersion: m.GetResourceVersion(),
		CreationTimestamp: m.GetCreationTimestamp(), Labels: m.GetLabels(), Annotations: m.GetAnnotations(),
	}
}

func toQuota(q *api.ResourceQuota) *musterv1.ResourceQuota {
	m := &musterv1.ResourceQuota{
		Metadata: toMeta(q.Metadata), Hard: named[string](q.Spec.Hard), Soft: named[string](q.Spec.Soft), Scopes: q.Spec.Scopes,
	}
	for _, e := range q.Spec.ScopeSelector.MatchExpressions {
		m.ScopeSelector = append(m.ScopeSelector, &musterv1.ScopeExpression{ScopeName: e.ScopeName, Operator: e.Operator, Values: e.Values})
	}
	return m
}

func fromQuota(m *musterv1.ResourceQuota) *api.ResourceQuota {
	q := &api.ResourceQuota{
		Metadata: fromMeta(m.GetMetadata()),
		Spec: api.ResourceQuotaSpec{
			Hard: named[resource.Name](m.GetHard()), Soft: named[resource.Name](m.GetSoft()), Scopes: m.GetScopes(), ScopeSelector: &api.ScopeSelector{},
		},
		Status: api.ResourceQuotaStatus{Hard: named[resource.Name](m.GetStatus().GetHard()), Used: named[resource.Name](m.GetStatus().GetUsed())},
	}
	for _, e := range m.GetScopeSelector() {
		q.Spec.ScopeSelector.MatchExpressions = append(q.Spec.ScopeSelector.MatchExpressions,
			api.ScopeExpression{ScopeName: e.GetScopeName(), Operator: e.GetOperator(), Values: e.GetValues()})
	}
	return q
}

func (r remote) CreateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	m, err := r.client.CreateResourceQuota(ctx, toQuota(q))
	return got(m, err, fromQuota)
}

func (r remote) UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	m, err := r.client.UpdateResourceQuota(ctx, toQuota(q))
	return got(m, err, fromQuota)
}

func (r remote) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	m, err := r.client.GetResourceQuota(ctx, &musterv1.QuotaKey{Namespace: namespace, Name: name})
	return got(m, err, fromQuota)
}

func (r remote) DeleteResourceQuota(ctx context.Context, namespace, name string, require api.Preconditions) (*api.ResourceQuota, error) {
	m, err := r.client.DeleteResourceQuota(ctx, &musterv1.QuotaKey{Namespace: namespace, Name: name})
	return got(m, err, fromQuota)
}

func (r remote) ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error) {
	m, err := r.client.ListResourceQuotas(ctx, &musterv1.ListResourceQuotasRequest{Namespace: namespace})
	return got(m, err, func(m *musterv1.ListResourceQuotasResponse) *api.ResourceQuotaList {
		l := &api.ResourceQuotaList{Metadata: api.ListMeta{ResourceVersion: m.GetResourceVersion()}}
		for _, item := range m.GetItems() {
			l.Items = append(l.Items, *fromQuota(item))
		}
		return l
	})
}

func fromTree(m *musterv1.QuotaTree) *api.QuotaTree {
	s := m.GetStatus()
	t := &api.QuotaTree{
		Metadata: fromMeta(m.GetMetadata()), Spec: m.GetSpec(),
		Status: api.QuotaTreeStatus{
			Root: s.GetRoot(), Dangling: s.GetDangling(), OtherRoots: s.GetOtherRoots(), Orphans: s.GetOrphans(), Cyclic: s.GetCyclic(), Detached: s.GetDetached(),
		},
	}
	for _, n := range s.GetNodes() {
		t.Status.Nodes = append(t.Status.Nodes, api.QuotaNodeStatus{
			Name: n.GetName(), Parent: n.GetParent(), Depth: int(n.GetDepth()), Hard: n.GetHard(), Leaf: n.GetLeaf(),
			Quota: named[resource.Name](n.GetQuota()), Allocated: named[resource.Name](n.GetAllocated()),
		})
	}
	return t
}

func (r remote) PutQuotaTree(ctx context.Context, t *api.QuotaTree, create bool) (*api.QuotaTree, error) {
	m, err := r.client.PutQuotaTree(ctx, &musterv1.PutQuotaTreeRequest{Tree: &musterv1.QuotaTree{Metadata: toMeta(t.Metadata), Spec: t.Spec}, CreateOnly: create})
	return got(m, err, fromTree)
}

func (r remote) GetQuotaTree(ctx context.Context, name string) (*api.QuotaTree, error) {
	m, err := r.client.GetQuotaTree(ctx, &musterv1.QuotaKey{Name: name})
	return got(m, err, fromTree)
}

func (r remote) ListQuotaTrees(ctx context.Context) (*api.QuotaTreeList, error) {
	m, err := r.client.ListQuotaTrees(ctx, &musterv1.ListQuotaTreesRequest{})
	return got(m, err, func(m *musterv1.ListQuotaTreesResponse) *api.QuotaTreeList {
		l := &api.QuotaTreeList{}
		for _, item := range m.GetItems() {
			l.Items = append(l.Items, *fromTree(item))
		}
		return l
	})
}

func (r remote) DeleteQuotaTree(ctx context.Context, name string, require api.Preconditions) (*api.QuotaTree, error) {
	m, err := r.client.DeleteQuotaTree(ctx, &musterv1.QuotaKey{Name: name})
	return got(m, err, fromTree)
}

func fromForest(m *musterv1.QuotaForest) *api.QuotaForest {
	return &api.QuotaForest{Metadata: fromMeta(m.GetMetadata()), Spec: api.QuotaForestSpec{Trees: m.GetTrees()}}
}

func (r remote) PutQuotaForest(ctx context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error) {
	m, err := r.client.PutQuotaForest(ctx, &musterv1.PutQuotaForestRequest{
		Forest: &musterv1.QuotaForest{Metadata: toMeta(f.Metadata), Trees: f.Spec.Trees}, CreateOnly: create,
	})
	return got(m, err, fromForest)
}

func (r remote) GetQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error) {
	m, err := r.client.GetQuotaForest(ctx, &musterv1.QuotaKey{Name: name})
	return got(m, err, fromForest)
}

func (r remote) ListQuotaForests(ctx context.Context) (*api.QuotaForestList, error) {
	m, err := r.client.ListQuotaForests(ctx, &musterv1.ListQuotaForestsRequest{})
	return got(m, err, func(m *musterv1.ListQuotaForestsResponse) *api.QuotaForestList {
		l := &api.QuotaForestList{}
		for _, item := range m.GetItems() {
			l.Items = append(l.Items, *fromForest(item))
		}
		return l
	})
}

func (r remote) DeleteQuotaForest(ctx context.Context, name string, require api.Preconditions) (*api.QuotaForest, error) {
	m, err := r.client.DeleteQuotaForest(ctx, &musterv1.QuotaKey{Name: name})
	return got(m, err, fromForest)
}

func fromBinding(m *musterv1.QuotaBinding) *api.QuotaBinding {
	return &api.QuotaBinding{
		Metadata: fromMeta(m.GetMetadata()),
		Spec:     api.QuotaBindingSpec{Forest: m.GetForest(), Groups: m.GetGroups(), Admission: m.GetAdmission()},
	}
}

func (r remote) PutQuotaBinding(ctx context.Context, b *api.QuotaBinding, create bool) (*api.QuotaBinding, error) {
	m, err := r.client.PutQuotaBinding(ctx, &musterv1.PutQuotaBindingRequest{
		Binding:    &musterv1.QuotaBinding{Metadata: toMeta(b.Metadata), Forest: b.Spec.Forest, Groups: b.Spec.Groups, Admission: b.Spec.Admission},
		CreateOnly: create,
	})
	return got(m, err, fromBinding)
}

func (r remote) GetQuotaBinding(ctx context.Context, namespace string) (*api.QuotaBinding, error) {
	m, err := r.client.GetQuotaBinding(ctx, &musterv1.QuotaKey{Name: namespace})
	return got(m, err, fromBinding)
}

func (r remote) ListQuotaBindings(ctx context.Context) (*api.QuotaBindingList, error) {
	m, err := r.client.ListQuotaBindings(ctx, &musterv1.ListQuotaBindingsRequest{})
	return got(m, err, func(m *musterv1.ListQuotaBindingsResponse) *api.QuotaBindingList {
		l := &api.QuotaBindingList{}
		for _, item := range m.GetItems() {
			l.Items = append(l.Items, *fromBinding(item))
		}
		return l
	})
}

func (r remote) DeleteQuotaBinding(ctx context.Context, namespace string, require api.Preconditions) (*api.QuotaBinding, error) {
	m, err := r.client.DeleteQuotaBinding(ctx, &musterv1.QuotaKey{Name: namespace})
	return got(m, err, fromBinding)
}

func fromPlacements(ms []*musterv1.QuotaPlacement) []api.QuotaPlacement {
	var placements []api.QuotaPlacement
	for _, m := range ms {
		placements = append(placements, api.QuotaPlacement{
			Tree: m.GetTree(), Group: m.GetGroup(), Request: named[resource.Name](m.GetRequest()), Priority: m.GetPriority(),
			Unpreemptable: m.GetUnpreemptable(), Node: m.GetNode(), BorrowsFrom: m.GetBorrowsFrom(), ReclaimableBy: m.GetReclaimableBy(),
		})
	}
	return placements
}

func (r remote) ExplainQuota(ctx context.Context, namespace, name string) (*api.QuotaExplanation, error) {
	m, err := r.client.ExplainQuota(ctx, &musterv1.QuotaKey{Namespace: namespace, Name: name})
	return got(m, err, func(m *musterv1.QuotaExplanation) *api.QuotaExplanation {
		return &api.QuotaExplanation{Consumer: m.GetConsumer(), Phase: api.Phase(m.GetPhase()), Placements: fromPlacements(m.GetPlacements()), Summary: m.GetSummary()}
	})
}

func (r remote) TryQuota(ctx context.Context, consumer []byte, _ service.Principal) (*api.QuotaDryRun, error) {
	m, err := r.client.TryQuota(ctx, &musterv1.TryQuotaRequest{Consumer: consumer})
	return got(m, err, func(m *musterv1.QuotaDryRun) *api.QuotaDryRun {
		reasons, err := wire.FromReasons(m.GetReasons())
		if err != nil {
			panic(err)
		}
		return &api.QuotaDryRun{
			Admitted: m.GetAdmitted(), Placements: fromPlacements(m.GetPlacements()), Victims: m.GetVictims(), Moved: m.GetMoved(), Reasons: reasons, Summary: m.GetSummary(),
		}
	})
}

func fromOverdrafts(ms []*musterv1.QuotaOverdraft) []api.QuotaOverdraft {
	var all []api.QuotaOverdraft
	for _, m := range ms {
		all = append(all, api.QuotaOverdraft{Node: m.GetNode(), Over: named[resource.Name](m.GetOver())})
	}
	return all
}

func (r remote) ReclaimQuota(ctx context.Context, tree string, dryRun bool, grace *int64) (*api.QuotaReclaim, error) {
	m, err := r.client.ReclaimQuota(ctx, &musterv1.ReclaimQuotaRequest{Tree: tree, DryRun: dryRun, GracePeriodSeconds: grace})
	return got(m, err, func(m *musterv1.QuotaReclaim) *api.QuotaReclaim {
		reclaim := &api.QuotaReclaim{
			Tree: m.GetTree(), DryRun: m.GetDryRun(), Nodes: fromOverdrafts(m.GetNodes()), Remaining: fromOverdrafts(m.GetRemaining()), Summary: m.GetSummary(),
		}
		for _, u := range m.GetUnits() {
			reclaim.Units = append(reclaim.Units, api.QuotaReclaimed{
				Kind: u.GetKind(), Consumer: u.GetConsumer(), Node: u.GetNode(), Request: named[resource.Name](u.GetRequest()), Priority: u.GetPriority(),
			})
		}
		return reclaim
	})
}
