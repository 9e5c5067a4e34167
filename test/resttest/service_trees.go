package resttest

import (
	"context"
	"encoding/json"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/shown"
)

// PutQuotaTree implements service.Quotas. An update that leaves a node with less
// than is charged to it ends nobody.
func (c *Cluster) PutQuotaTree(ctx context.Context, t *api.QuotaTree, create bool) (*api.QuotaTree, error) {
	name := t.Metadata.Name
	if status := t.Validate(); status != nil {
		return nil, status
	}
	if name == quota.Tree {
		return nil, api.Errorf(422, "metadata.name: %q names the limits of the namespaces, choose another", name)
	}
	if !json.Valid(t.Spec) {
		return nil, api.Errorf(400, "spec: not JSON")
	}
	spec, status := charges.SpecOf(*t)
	if status != nil {
		return nil, status
	}
	got, err := ask[lead.Warned[*api.QuotaTree]](ctx, c, lead.PutQuotaTree{Object: t, Create: create, Spec: spec, AllowUnknown: service.AllowsUnknownResources(ctx)})
	warn(ctx, got.Warnings)
	return got.Object, err
}

// GetQuotaTree implements service.Quotas.
func (c *Cluster) GetQuotaTree(ctx context.Context, name string) (*api.QuotaTree, error) {
	return see(ctx, c, func(v *objects.View) (*api.QuotaTree, *api.Status) {
		t, found, err := v.Tree(name)
		must(err)
		if !found {
			return nil, charges.NoQuotaTree(name)
		}
		return t, nil
	})
}

// ListQuotaTrees implements service.Quotas.
func (c *Cluster) ListQuotaTrees(ctx context.Context) (*api.QuotaTreeList, error) {
	return see(ctx, c, func(v *objects.View) (*api.QuotaTreeList, *api.Status) {
		items, newest, err := v.Trees()
		must(err)
		return &api.QuotaTreeList{Kind: "QuotaTreeList", Metadata: shown.ListMeta(newest), Items: items}, nil
	})
}

// DeleteQuotaTree implements service.Quotas.
func (c *Cluster) DeleteQuotaTree(ctx context.Context, name string, require api.Preconditions) (*api.QuotaTree, error) {
	return ask[*api.QuotaTree](ctx, c, lead.DeleteQuotaTree{Name: name, Require: require})
}

// warn gives the client of a change its warnings.
func warn(ctx context.Context, texts []string) {
	for _, text := range texts {
		service.Warn(ctx, text)
	}
}
