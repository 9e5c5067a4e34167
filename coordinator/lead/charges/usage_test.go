package charges

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// The usage of a tenant is the sum of its charges, in any order of charges and ends,
// repeated ones included; its peak is the greatest sum; and memory is bounded.
func TestTheUsageOfATenantIsTheSumOfItsCharges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		l := New(quota.Options{}, now)
		charged, peak := map[resource.TxID]int64{}, int64(0)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "seconds")) * time.Second)
			tx := resource.TxID(fmt.Sprintf("tx-%d", rapid.IntRange(0, 5).Draw(t, "tx")))
			if amount := rapid.Int64Range(1, 9).Draw(t, "amount"); rapid.Bool().Draw(t, "charge") {
				l.Charge(tx, "ml", quota.Charge{Group: "ml-dev", Request: resource.Vector{resource.GPU: amount}, Members: 1}, now)
				if _, twice := charged[tx]; !twice {
					charged[tx] = amount
				}
			} else {
				l.Uncharge(tx, "ml", now)
				delete(charged, tx)
			}
			sum := int64(0)
			for _, amount := range charged {
				sum += amount
			}
			peak = max(peak, sum)
			if of := l.usage.tenants["ml"]; sum != 0 || of != nil {
				past := of[resource.GPU].past.Over(now, 24*time.Hour)
				if of[resource.GPU].value != sum || of[resource.Pods].value != int64(len(charged)) || past.Peak != peak {
					t.Fatalf("%d GPUs of %d members with the peak %d, want %d of %d and %d", of[resource.GPU].value, of[resource.Pods].value, past.Peak, sum, len(charged), peak)
				}
			}
			if got := l.usage.charged["ml"]["ml-dev"]; got != len(charged) {
				t.Fatalf("%d transactions are charged, want %d", got, len(charged))
			}
		}
		for tx := range charged {
			l.Uncharge(tx, "ml", now)
		}
		l.usage.forgetIdle(now.Add(25 * time.Hour))
		if len(l.usage.tenants)+len(l.usage.charged)+l.usage.kept != 0 {
			t.Fatalf("a day later %d tenants and %d levels are left", len(l.usage.tenants), l.usage.kept)
		}
	})
}

func TestHistoriesAreBounded(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	u := newUsage(now)
	for i := range mostLevels + 10 {
		u.add(now, resource.TenantID(fmt.Sprintf("t%d", i)), quota.Charge{Group: "g", Request: resource.Vector{resource.CPU: 1}}, 1)
	}
	with := 0
	for _, of := range u.tenants {
		if of[resource.CPU].past != nil {
			with++
		}
	}
	if len(u.tenants) != mostLevels+10 || with != mostLevels {
		t.Errorf("%d tenants, %d with a history, want %d", len(u.tenants), with, mostLevels)
	}
}

func TestTheQuotaOfATenantIsThatOfAllItsNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		vectors map[string]resource.Vector
		want    resource.Vector
	}{
		"no namespace has none":                        {nil, resource.Vector{}},
		"one namespace":                                {map[string]resource.Vector{"a": {"cpu": 3}}, resource.Vector{"cpu": 3}},
		"two namespaces add up":                        {map[string]resource.Vector{"a": {"cpu": 3}, "b": {"cpu": 4}}, resource.Vector{"cpu": 7}},
		"a namespace without a limit leaves none":      {map[string]resource.Vector{"a": {"cpu": 3}, "b": {}}, resource.Vector{}},
		"each resource is judged by itself":            {map[string]resource.Vector{"a": {"cpu": 3, "memory": 1}, "b": {"cpu": 4}}, resource.Vector{"cpu": 7}},
		"a limit beyond all numbers stays within them": {map[string]resource.Vector{"a": {"cpu": 1 << 62}, "b": {"cpu": 1 << 62}}, resource.Vector{"cpu": 1<<63 - 1}},
		"a limit of 0 is a limit":                      {map[string]resource.Vector{"a": {"cpu": 0}, "b": {"cpu": 4}}, resource.Vector{"cpu": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sumOfAll(c.vectors); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
