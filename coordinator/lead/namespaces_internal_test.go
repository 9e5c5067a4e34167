package lead

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// TestTheRuleInForce draws an object, a configuration and a binding of one namespace,
// each perhaps absent, and compares the rules in force with the order of precedence
// that docs/namespaces.md gives.
func TestTheRuleInForce(t *testing.T) {
	word := func(words ...string) *rapid.Generator[string] { return rapid.SampledFrom(words) }
	rapid.Check(t, func(t *rapid.T) {
		l := NewLeader(Beginning{Now: time.Unix(0, 0), Rules: Rules{Quota: quota.Options{}}})
		configured := Namespace{Tenant: resource.TenantID(word("", "ops").Draw(t, "configured tenant")), Admission: word("", "reject", "queue").Draw(t, "configured admission")}
		inConfiguration, hasObject := rapid.Bool().Draw(t, "in the configuration"), rapid.Bool().Draw(t, "has an object")
		l.spaces.configured = rapid.Bool().Draw(t, "the configuration's are objects")
		l.rules.EvictOnDeviceLost = rapid.Bool().Draw(t, "evict on device lost")
		if inConfiguration {
			l.rules.Namespaces = map[string]Namespace{"n": configured}
		}
		spec := api.NamespaceSpec{
			Tenant: word("", "vision").Draw(t, "tenant"), Admission: word("", "reject", "queue").Draw(t, "admission"), DeviceLost: word("", "keep", "evict").Draw(t, "deviceLost"),
			Unsatisfiable: word("", "wait", "reject").Draw(t, "unsatisfiable"), DefaultQueue: word("", "research").Draw(t, "queue"),
		}
		if hasObject {
			l.objects.Namespaces.Set(api.Namespace{Metadata: api.ObjectMeta{Name: "n"}, Spec: spec}, 1)
		}
		binding := word("none", "", "reject", "queue").Draw(t, "binding")
		if binding != "none" {
			l.objects.Bindings.Set(api.QuotaBinding{Metadata: api.ObjectMeta{Name: "n"}, Spec: api.QuotaBindingSpec{Admission: binding}}, 1)
		}

		var want Namespace
		switch {
		case hasObject:
			want = Namespace{Tenant: resource.TenantID(spec.Tenant), Admission: spec.Admission, Unsatisfiable: spec.Unsatisfiable, DeviceLost: spec.DeviceLost, DefaultQueue: spec.DefaultQueue}
		case inConfiguration && !l.spaces.configured:
			want = configured
		}
		if want.Tenant == "" {
			want.Tenant = "n"
		}
		if diff := cmp.Diff(want, l.namespace("n")); diff != "" {
			t.Errorf("the rules (-want +got):\n%s", diff)
		}
		queues := want.Admission == "queue"
		if binding == "queue" || binding == "reject" {
			queues = binding == "queue"
		}
		if got := l.queuesOverQuota("n"); got != queues {
			t.Errorf("an allocation over quota waits: %t, want %t", got, queues)
		}
		evicts := l.rules.EvictOnDeviceLost
		if want.DeviceLost != "" {
			evicts = want.DeviceLost == "evict"
		}
		if got := l.evictsOnLoss("n"); got != evicts {
			t.Errorf("a holder of a lost device is evicted: %t, want %t", got, evicts)
		}
	})
}
