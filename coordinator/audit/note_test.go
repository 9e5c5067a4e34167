package audit

import (
	"context"
	"testing"

	"github.com/musterd/muster/coordinator/lead/entries"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
)

// asked is the context of a request for the output of a job.
func asked(ctx context.Context, p service.Principal) context.Context {
	ctx = service.WithCaller(ctx, service.Caller{Principal: p})
	service.Begin(ctx, service.VerbLogs, service.KindJobs, "vision", "train")
	return ctx
}

// A tenant who reads the output of a job without end has a bounded number of entries, and
// the last of them counts the further looks. Administrators and operators have all of theirs.
func TestLooksAtOutputHaveAShare(t *testing.T) {
	for what, c := range map[string]struct {
		by   service.Principal
		keys int
	}{
		"an editor of a tenant":          {service.Principal{Name: "ada", Tenant: "vision"}, entries.MostAlike},
		"an editor of all tenants":       {service.Principal{Name: "ada", Grants: []service.Grant{{Role: service.Editor}}}, entries.MostAlike},
		"an administrator":               {service.Principal{Name: "root", Admin: true}, 3 * entries.MostAlike},
		"an operator":                    {service.Principal{Name: "olga", Grants: []service.Grant{{Role: service.Operator}}}, 3 * entries.MostAlike},
		"an operator who has a tenant":   {service.Principal{Name: "olga", Tenant: "vision", Grants: []service.Grant{{Role: service.Operator}}}, 3 * entries.MostAlike},
		"a person with roles in tenants": {service.Principal{Name: "eve", Grants: []service.Grant{{Role: service.TenantAdmin, Tenant: "a"}, {Role: service.Editor, Tenant: "b"}}}, entries.MostAlike},
	} {
		t.Run(what, func(t *testing.T) {
			kv := mem.Open(mem.Options{})
			note := NoteIn(kv)
			for range 3 * entries.MostAlike {
				if err := note(asked(t.Context(), c.by)); err != nil {
					t.Fatal(err)
				}
			}
			kept, _, err := kv.Range(t.Context(), record.AuditPrefix, store.RangeOptions{})
			if err != nil || len(kept) != c.keys {
				t.Fatalf("%d keys, want %d: %v", len(kept), c.keys, err)
			}
			sum := int64(0)
			for _, one := range kept {
				a, err := record.Decode[record.Audit](one.Key, one.Value)
				if err != nil {
					t.Fatal(err)
				}
				sum += max(a.Count, 1)
			}
			if sum != 3*entries.MostAlike {
				t.Errorf("the entries stand for %d looks, want %d", sum, 3*entries.MostAlike)
			}
		})
	}
}
