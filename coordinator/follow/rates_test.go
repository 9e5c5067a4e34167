package follow

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/musterd/muster/coordinator/record"
)

// putTenant writes a tenant; a spec of "" deletes it.
func putTenant(t *testing.T, f *following, name, spec string) {
	t.Helper()
	op := record.Delete(record.NamedKey(record.TenantsPrefix, name))
	if spec != "" {
		op = record.Put(record.NamedKey(record.TenantsPrefix, name), record.MustEncode(record.Object{
			UID: "u-" + name, Name: name, Document: fmt.Appendf(nil, `{"kind":"Tenant","metadata":{"name":%q},"spec":%s}`, name, spec),
		}))
	}
	if _, err := f.back.Txn(t.Context(), record.Txn{Then: []record.Op{op}}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// A coordinator knows each tenant's own limit of requests from the store, and one that
// loads everything anew knows the same.
func TestTheLimitOfATenantFollowsItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startFollowing(t)
		defer f.end()
		want := func(step string, vision, speech int) {
			t.Helper()
			if v, s := f.RequestsPerMinute("vision"), f.RequestsPerMinute("speech"); v != vision || s != speech {
				t.Errorf("%s: vision has %d and speech %d, want %d and %d", step, v, s, vision, speech)
			}
		}
		want("before", 0, 0)
		putTenant(t, f, "vision", `{"requestsPerMinute":1000}`)
		putTenant(t, f, "speech", `{}`)
		want("set", 1000, 0)
		putTenant(t, f, "vision", `{"requestsPerMinute":5}`)
		putTenant(t, f, "speech", `{"requestsPerMinute":7}`)
		want("changed", 5, 7)
		putTenant(t, f, "vision", `{"owner":"ada"}`)
		want("taken back", 0, 7)
		putTenant(t, f, "speech", "")
		want("deleted", 0, 0)
		putTenant(t, f, "vision", `{"requestsPerMinute":9}`)
		again := New(options(f.back, f.Follower.log))
		if _, err := again.load(t.Context(), func() {}); err != nil || again.RequestsPerMinute("vision") != 9 {
			t.Errorf("loaded anew: %d, %v", again.RequestsPerMinute("vision"), err)
		}
	})
}
