package count_test

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/resource"
)

func TestATenantHasABoundedNumberOfWaitingUnits(t *testing.T) {
	many, few := int64(200), int64(5)
	for name, c := range map[string]struct {
		own        *api.NamespaceCounts
		used, more int64
		want       string // "" is taken
	}{
		"the last unit":               {nil, 99, 1, ""},
		"one unit more":               {nil, 100, 1, "tenant a has 100 units that wait in all of its namespaces and may have 100: there is no room for 1 more; ask again when some have started, or ask an operator to raise limits.allocationsPerNamespace"},
		"several at once":             {nil, 99, 2, "tenant a has 99 units that wait in all of its namespaces and may have 100: there is no room for 2 more; ask again when some have started, or ask an operator to raise limits.allocationsPerNamespace"},
		"nothing more":                {nil, 1000, 0, ""},
		"less":                        {nil, 1000, -5, ""},
		"a namespace that may more":   {&api.NamespaceCounts{Allocations: &many}, 199, 1, ""},
		"more units may wait there":   {&api.NamespaceCounts{WaitingUnits: &many}, 199, 1, ""},
		"beyond the namespace's":      {&api.NamespaceCounts{Allocations: &many, WaitingUnits: &few}, 200, 1, "tenant a has 200 units that wait in all of its namespaces and may have 200: there is no room for 1 more; ask again when some have started, or ask an operator to raise limits.allocationsPerNamespace"},
		"a namespace that may little": {&api.NamespaceCounts{WaitingUnits: &few}, 99, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := count.WaitingOf(c.own, 100)
			used, more := count.Use{Waiting: c.used}, count.Use{Waiting: c.more}
			status := w.Refuse("a", used, more)
			switch {
			case c.want == "" && status != nil:
				t.Error(status)
			case c.want != "" && (status == nil || status.Code != 429 || status.Message != c.want || status.RetryAfterSeconds == 0):
				t.Errorf("got %+v, want %q", status, c.want)
			}
			if w.IsFar(used, more) != (status == nil) { // where the tenant has all units
				t.Errorf("far: %t, refused: %v", w.IsFar(used, more), status)
			}
		})
	}
}

// The shares of a tenant bind where all tenants together are beyond one of the bounds.
func TestSharesOfATenant(t *testing.T) {
	shares := count.Shares{Documents: 100 << 20, Waiting: 10}
	of := func(tenant resource.TenantID) count.Use {
		return map[resource.TenantID]count.Use{"a": {Waiting: 10}, "b": {Waiting: 9}, "c": {Documents: 50 << 20}}[tenant]
	}
	all := count.Use{Waiting: 19, Documents: 50 << 20}
	for name, c := range map[string]struct {
		tenant  resource.TenantID
		more    count.Use
		refused bool
	}{
		"a tenant at its bound":     {"a", count.Use{Waiting: 1}, true},
		"a tenant below":            {"b", count.Use{Waiting: 1}, false},
		"a tenant beyond, by bytes": {"c", count.Use{Documents: 1}, true},
		"bytes of another":          {"b", count.Use{Documents: 1}, false},
		"nothing":                   {"a", count.Use{}, false},
	} {
		if status := shares.Refuse(c.tenant, of, all, c.more); (status != nil) != c.refused {
			t.Errorf("%s: %v", name, status)
		}
	}
}
