package sdk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/resttest"
)

// remote reaches a service's quotas through the client.
type remote struct{ *sdk.Client }

// TryQuota leaves the reader to the server, which knows the bearer of the token.
func (r remote) TryQuota(ctx context.Context, consumer []byte, _ service.Principal) (*api.QuotaDryRun, error) {
	return r.Client.TryQuota(ctx, consumer)
}

func (r remote) CreateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return r.ResourceQuotas(q.Metadata.Namespace).Create(ctx, q)
}

func (r remote) GetResourceQuota(ctx context.Context, namespace, name string) (*api.ResourceQuota, error) {
	return r.ResourceQuotas(namespace).Get(ctx, name)
}

func (r remote) ListResourceQuotas(ctx context.Context, namespace string) (*api.ResourceQuotaList, error) {
	return r.ResourceQuotas(namespace).List(ctx, sdk.ListOptions{})
}

// UpdateResourceQuota makes of the put, which also creates, an update.
func (r remote) UpdateResourceQuota(ctx context.Context, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	if _, err := r.GetResourceQuota(ctx, q.Metadata.Namespace, q.Metadata.Name); err != nil {
		return nil, err
	}
	return r.ResourceQuotas(q.Metadata.Namespace).Update(ctx, q)
}

func (r remote) DeleteResourceQuota(ctx context.Context, namespace, name string, _ api.Preconditions) (*api.ResourceQuota, error) {
	return r.ResourceQuotas(namespace).Delete(ctx, name)
}

func (r remote) PutQuotaTree(ctx context.Context, t *api.QuotaTree, create bool) (*api.QuotaTree, error) {
	if create {
		return r.QuotaTrees().Create(ctx, t)
	}
	return r.QuotaTrees().Update(ctx, t)
}

func (r remote) GetQuotaTree(ctx context.Context, name string) (*api.QuotaTree, error) {
	return r.QuotaTrees().Get(ctx, name)
}

func (r remote) ListQuotaTrees(ctx context.Context) (*api.QuotaTreeList, error) {
	return r.QuotaTrees().List(ctx, sdk.ListOptions{})
}

func (r remote) DeleteQuotaTree(ctx context.Context, name string, _ api.Preconditions) (*api.QuotaTree, error) {
	return r.QuotaTrees().Delete(ctx, name)
}

func (r remote) PutQuotaForest(ctx context.Context, f *api.QuotaForest, create bool) (*api.QuotaForest, error) {
	if create {
		return r.QuotaForests().Create(ctx, f)
	}
	return r.QuotaForests().Update(ctx, f)
}

func (r remote) GetQuotaForest(ctx context.Context, name string) (*api.QuotaForest, error) {
	return r.QuotaForests().Get(ctx, name)
}

func (r remote) ListQuotaForests(ctx context.Context) (*api.QuotaForestList, error) {
	return r.QuotaForests().List(ctx, sdk.ListOptions{})
}

func (r remote) DeleteQuotaForest(ctx context.Context, name string, _ api.Preconditions) (*api.QuotaForest, error) {
	return r.QuotaForests().Delete(ctx, name)
}

func (r remote) PutQuotaBinding(ctx context.Context, b *api.QuotaBinding, create bool) (*api.QuotaBinding, error) {
	if create {
		return r.QuotaBindings().Create(ctx, b)
	}
	return r.QuotaBindings().Update(ctx, b)
}

func (r remote) GetQuotaBinding(ctx context.Context, namespace string) (*api.QuotaBinding, error) {
	return r.QuotaBindings().Get(ctx, namespace)
}

func (r remote) ListQuotaBindings(ctx context.Context) (*api.QuotaBindingList, error) {
	return r.QuotaBindings().List(ctx, sdk.ListOptions{})
}

func (r remote) DeleteQuotaBinding(ctx context.Context, namespace string, _ api.Preconditions) (*api.QuotaBinding, error) {
	return r.QuotaBindings().Delete(ctx, namespace)
}

func (r remote) ReclaimQuota(ctx context.Context, tree string, dryRun bool, grace *int64) (*api.QuotaReclaim, error) {
	return r.QuotaTrees().Reclaim(ctx, tree, sdk.ReclaimOptions{DryRun: dryRun, GracePeriodSeconds: grace})
}

func TestQuotasOverREST(t *testing.T) {
	resttest.RunQuotas(t, func(t *testing.T) service.Quotas {
		_, client := serve(t, nil)
		return remote{client}
	})
}

func TestQuotasArePatched(t *testing.T) {
	_, client := serve(t, nil)
	ctx, mine := t.Context(), client.ResourceQuotas("ml-team")
	q := &api.ResourceQuota{
		Metadata: api.ObjectMeta{Name: "q"}, Spec: api.ResourceQuotaSpec{Hard: map[resource.Name]string{"cpu": "4", "memory": "1Gi"}},
	}
	made, err := mine.Create(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := mine.Patch(ctx, "q", []byte(`{"spec":{"hard":{"cpu":"8","memory":null}}}`))
	if err != nil || len(patched.Spec.Hard) != 1 || patched.Spec.Hard["cpu"] != "8" {
		t.Errorf("patched %+v, %v", patched, err)
	}
	_, err = mine.Patch(ctx, "q", []byte(`{"metadata":{"resourceVersion":"`+made.Metadata.ResourceVersion+`"},"spec":{"hard":null}}`))
	var status *api.Status
	if !errors.As(err, &status) || status.Code != 409 {
		t.Errorf("a patch from an old version: %v, want 409", err)
	}
	if got, err := mine.Status(ctx, "q"); err != nil || got.Hard["cpu"] != "8" || got.Utilization["cpu"] != "0%" {
		t.Errorf("status %+v, %v", got, err)
	}
}
