package rights

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/sdk/allocator"
)

// sdkCall is a call of the SDK about the objects of a tenant.
type sdkCall func(ctx context.Context, c *sdk.Client, tenant string, h *house) error

// fails makes a sdkCall of a call with a result.
func fails[T any](_ T, err error) error { return err }

// first is the error with which a sequence begins.
func first[T any](seq func(func(T, error) bool)) (err error) {
	seq(func(_ T, e error) bool { err = e; return false })
	return err
}

// sdkCalls are the calls of the SDK that are of one kind alone; those that every kind has
// are added by ofKinds.
var sdkCalls = map[string]sdkCall{
	"Allocations.Explain": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Allocations(tenant).Explain(ctx, "thing", sdk.ExplainOptions{}))
	},
	"Allocations.Try": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Allocations(tenant).Try(ctx, &api.Allocation{}))
	},
	"Allocations.Release": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Allocations(tenant).Release(ctx, api.BulkReleaseOptions{LabelSelector: "a=b"}))
	},
	"Jobs.Explain": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Jobs(tenant).Explain(ctx, "thing", sdk.ExplainOptions{}))
	},
	"Jobs.Try": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Jobs(tenant).Try(ctx, &api.Job{}))
	},
	"Jobs.Cancel": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Jobs(tenant).Cancel(ctx, "thing", api.DeleteOptions{}))
	},
	"Jobs.Logs": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return first(c.Jobs(tenant).Logs(ctx, "thing", sdk.LogOptions{}))
	},
	"Jobs.Exec": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Jobs(tenant).Exec(ctx, "thing", sdk.ExecOptions{Command: []string{"true"}}))
	},
	"Jobs.Boost": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Jobs(tenant).Boost(ctx, "thing", api.BoostOptions{NewPriority: 1, Duration: "1h"}))
	},
	"ExplainQuota": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.ExplainQuota(ctx, tenant, "thing"))
	},
	"TryQuota": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.TryQuota(ctx, []byte("{}")))
	},
	"Preempt": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Preempt(ctx, tenant, api.PreemptionRequest{}))
	},
	"Nodes.PatchStatus": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Nodes().PatchStatus(ctx, "thing", api.NodeStatusPatch{}))
	},
	"Nodes.Cordon": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Nodes().Cordon(ctx, "thing"))
	},
	"Nodes.Approve": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Nodes().Approve(ctx, "thing", api.ApproveOptions{}))
	},
	"Nodes.Drain": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Nodes().Drain(ctx, "thing", api.DrainOptions{}))
	},
	"Nodes.Fence": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Nodes().Fence(ctx, "thing", api.FenceOptions{}))
	},
	"Nodes.Reconcile": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Nodes().Reconcile(ctx, "thing", api.ReconcileOptions{}))
	},
	"Nodes.Evictions": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Nodes().Evictions(ctx, "thing"))
	},
	"Nodes.WatchEvictions": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return first(c.Nodes().WatchEvictions(ctx, "thing", ""))
	},
	"PastAllocations": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.PastAllocations(ctx, sdk.PastOptions{}))
	},
	"PastPreemptions": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.PastPreemptions(ctx, sdk.PastOptions{}))
	},
	"PastEvents": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.PastEvents(ctx, sdk.PastOptions{}))
	},
	"Audit": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Audit(ctx, sdk.AuditOptions{}))
	},
	"WhoAmI":       func(ctx context.Context, c *sdk.Client, _ string, _ *house) error { return fails(c.WhoAmI(ctx)) },
	"Coordinators": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error { return fails(c.Coordinators(ctx)) },
	"QuotaMode":    func(ctx context.Context, c *sdk.Client, _ string, _ *house) error { return fails(c.QuotaMode(ctx)) },
	"FeatureLevel": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error { return fails(c.FeatureLevel(ctx)) },
	"RaiseFeatureLevel": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.RaiseFeatureLevel(ctx, api.FeatureLevelPatch{}))
	},
	"SetQuotaMode": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.SetQuotaMode(ctx, api.QuotaModePatch{}))
	},
	"QuotaTrees.Reclaim": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.QuotaTrees().Reclaim(ctx, "thing", sdk.ReclaimOptions{}))
	},
	"QuotaTrees.Rename": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.QuotaTrees().Rename(ctx, "thing", api.QuotaRename{}))
	},
	"Metrics.Cluster": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Metrics().Cluster(ctx))
	},
	"Metrics.Queues": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Metrics().Queues(ctx))
	},
	"Metrics.Tenant": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Metrics().Tenant(ctx, tenant, time.Hour))
	},
	"Tokens.Create": func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(c.Tokens().Create(ctx, api.AccessTokenSpec{User: "bob", Role: "viewer", Tenant: tenant}))
	},
	"Tokens.Get": func(ctx context.Context, c *sdk.Client, tenant string, h *house) error {
		return fails(c.Tokens().Get(ctx, h.ids[tenant]))
	},
	"Tokens.List": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error { return fails(c.Tokens().List(ctx)) },
	"Tokens.Rotate": func(ctx context.Context, c *sdk.Client, tenant string, h *house) error {
		return fails(c.Tokens().Rotate(ctx, h.ids[tenant], ""))
	},
	"Tokens.Revoke": func(ctx context.Context, c *sdk.Client, tenant string, h *house) error {
		return fails(c.Tokens().Revoke(ctx, h.ids[tenant]))
	},
	"Identity.CreateToken": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().CreateToken(ctx, api.BootstrapTokenSpec{}))
	},
	"Identity.ListTokens": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().ListTokens(ctx))
	},
	"Identity.RevokeToken": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().RevokeToken(ctx, "thing"))
	},
	"Identity.RevokeTokenIf": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().RevokeTokenIf(ctx, "thing", api.Preconditions{}))
	},
	"Identity.RetireAuthorityIf": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().RetireAuthorityIf(ctx, "thing", false, api.Preconditions{}))
	},
	"Identity.RevokeOperatorIf": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().RevokeOperatorIf(ctx, "thing", api.Preconditions{}))
	},
	"Identity.UnbanNodeIf": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().UnbanNodeIf(ctx, "thing", api.Preconditions{}))
	},
	"Tokens.RevokeIf": func(ctx context.Context, c *sdk.Client, tenant string, h *house) error {
		return fails(c.Tokens().RevokeIf(ctx, h.ids[tenant], api.Preconditions{}))
	},
	"Identity.Authorities": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().Authorities(ctx))
	},
	"Identity.RotateAuthority": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().RotateAuthority(ctx))
	},
	"Identity.RetireAuthority": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().RetireAuthority(ctx, "thing", false))
	},
	"Identity.CertifyOperator": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().CertifyOperator(ctx, "thing", "", 0))
	},
	"Identity.Operators": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().Operators(ctx))
	},
	"Identity.RevokeOperator": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().RevokeOperator(ctx, "thing"))
	},
	"Identity.BanNode": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().BanNode(ctx, "thing", ""))
	},
	"Identity.UnbanNode": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().UnbanNode(ctx, "thing"))
	},
	"Identity.Bans": func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
		return fails(c.Identity().Bans(ctx))
	},
}

// documents are objects for creations and replacements, where the request has to be
// whole to be judged.
func document(k *sdk.Kind, tenant string) []byte {
	switch k.Name {
	case "rolebinding":
		return []byte(`{"kind":"RoleBinding","metadata":{"name":"` + tenant + `.readers"},"spec":{"role":"viewer","tenant":"` + tenant + `","subjects":[{"kind":"User","name":"bob"}]}}`)
	case "job":
		return []byte(`{"kind":"Job","metadata":{"name":"thing"},"spec":{"parallelism":1,"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`)
	case "allocation":
		return []byte(`{"kind":"Allocation","metadata":{"name":"thing"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`)
	case "tenant", "namespace":
		return []byte(`{"kind":"` + k.Document + `","metadata":{"name":"` + tenant + `"},"spec":{}}`)
	case "quotabinding":
		return []byte(`{"kind":"QuotaBinding","metadata":{"name":"` + tenant + `"},"spec":{"groups":{"company":"a"}}}`)
	case "quotaforest":
		return []byte(`{"kind":"QuotaForest","metadata":{"name":"thing"},"spec":{"trees":["a"]}}`)
	case "quotatree":
		return []byte(`{"kind":"QuotaTree","metadata":{"name":"thing"},"spec":{"resourceNames":["cpu"],"nodes":{"thing":{"parent":"nil","quota":{"cpu":"1"}}}}}`)
	case "resourcequota":
		return []byte(`{"kind":"ResourceQuota","metadata":{"name":"thing"},"spec":{"hard":{"cpu":"1"}}}`)
	}
	return []byte(`{"kind":"` + k.Document + `","metadata":{"name":"thing"}}`)
}

// askSDK calls every call of the SDK as every role.
func askSDK(t *testing.T, h *house, see func(door, asked) answers) {
	calls := map[string]sdkCall{}
	for name, call := range sdkCalls {
		calls[name] = call
	}
	for _, k := range sdk.Kinds {
		h.callsOf(t, k, calls)
	}
	h.take()
	for name, call := range calls {
		for i, tenant := range []string{own, other} {
			for _, role := range who {
				client, err := sdk.NewClient(sdk.Config{Endpoint: h.url, Token: h.tokens[role]})
				if err != nil {
					t.Fatal(err)
				}
				err = call(t.Context(), client, tenant, h)
				var status *api.Status
				if !errors.As(err, &status) {
					if err != nil {
						t.Errorf("%s as %s: %v", name, role, err)
					}
					status = &api.Status{Code: http.StatusOK}
				}
				refused := h.checkAnswers(t, bySDK, name, role, []place{inOwn, inOther}[i], see)
				if refused != (answerOf(status.Code) != yes) {
					t.Errorf("%s as %s returns %d, the server refused it: %t", name, role, status.Code, refused)
				}
			}
		}
	}
	// The client of allocations alone is a view of the same calls.
	small, err := allocator.NewClient(allocator.Config{Endpoint: h.url, Token: h.tokens["viewer"]})
	if err != nil {
		t.Fatal(err)
	}
	var status *api.Status
	if _, err := small.Allocations(other).Get(t.Context(), "thing"); !errors.As(err, &status) || status.Code != http.StatusNotFound {
		t.Errorf("allocator.Get in another tenant: %v", err)
	}
	h.take()
}

// callsOf adds the calls that every kind has.
func (h *house) callsOf(t *testing.T, k *sdk.Kind, calls map[string]sdkCall) {
	at := func(c *sdk.Client, tenant string) sdk.Resource { return c.Resource(k, tenant) }
	name := func(tenant string) string {
		return h.nameIn(service.Kind(k.Plural), tenant)
	}
	calls[k.Plural+".Get"] = func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(at(c, tenant).Get(ctx, name(tenant), sdk.GetOptions{}))
	}
	calls[k.Plural+".List"] = func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(at(c, tenant).List(ctx, sdk.ListOptions{}))
	}
	if k.Namespaced {
		calls[k.Plural+".List of all namespaces"] = func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
			return fails(at(c, "").List(ctx, sdk.ListOptions{}))
		}
		calls[k.Plural+".Watch of all namespaces"] = func(ctx context.Context, c *sdk.Client, _ string, _ *house) error {
			return first(at(c, "").Watch(ctx, sdk.WatchOptions{}))
		}
	}
	calls[k.Plural+".Watch"] = func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return first(at(c, tenant).Watch(ctx, sdk.WatchOptions{}))
	}
	if k.Derived {
		return
	}
	calls[k.Plural+".Patch"] = func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(at(c, tenant).Patch(ctx, name(tenant), []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
	}
	calls[k.Plural+".Delete"] = func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
		return fails(at(c, tenant).Delete(ctx, name(tenant), api.DeleteOptions{}))
	}
	object := func(tenant string) sdk.Object {
		o, status := k.Decode(document(k, tenant))
		if status != nil {
			t.Fatalf("%s: %v", k.Name, status)
		}
		return o
	}
	if k.Created {
		calls[k.Plural+".Create"] = func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
			return fails(at(c, tenant).Create(ctx, object(tenant), sdk.CreateOptions{}))
		}
	}
	if k.Replaced {
		calls[k.Plural+".Replace"] = func(ctx context.Context, c *sdk.Client, tenant string, _ *house) error {
			return fails(at(c, tenant).Replace(ctx, object(tenant)))
		}
	}
}
