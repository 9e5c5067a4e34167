package lead

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// charging is a leader of a namespace that is charged to two trees and has a
// limit, with that many units charged already.
func charging(b testing.TB, live int) *Leader {
	b.Helper()
	l := NewLeader(Beginning{Epoch: 1, Now: time.Now()})
	for _, name := range []string{"Org", "Service"} {
		object := api.QuotaTree{Metadata: api.ObjectMeta{Name: name}, Spec: []byte(
			`{"nodes":{"all":{"quota":{"cpu":1000000}},"lab":{"parent":"all","quota":{"cpu":1000000}},"a":{"parent":"lab","quota":{"cpu":4}}}}`)}
		spec, status := charges.SpecOf(object)
		if status != nil {
			b.Fatal(status)
		}
		if _, err := l.quotas.SetTree(object, 1, spec, nil); err != nil {
			b.Fatal(err)
		}
	}
	l.objects.Bindings.Set(api.QuotaBinding{Metadata: api.ObjectMeta{Name: "bound"}, Spec: api.QuotaBindingSpec{Groups: map[string]string{"Org": "a", "Service": "a"}}}, 1)
	l.quotas.SetResourceQuota(l.configuredQuota("bound", resource.Vector{resource.CPU: 1 << 40}), 1)
	for i := range live {
		u := chargedUnit("bound", fmt.Sprint("live", i))
		if short, _ := l.tryCharge(u); short != nil {
			b.Fatalf("unit %d: %v", i, l.quotas.Reasons(short))
		}
		l.quotas.Limits().Charge(resource.TxID(u.Path), u.Charge)
	}
	return l
}

func chargedUnit(namespace, name string) *work.Unit {
	rec := record.Unit{Kind: record.AllocUnit, Namespace: namespace, Name: name, Members: 1}
	u := &work.Unit{Record: rec, Path: rec.Path().String()}
	u.Charge = quota.Charge{Group: namespace, Request: resource.Vector{resource.CPU: 4000, resource.GPU: 0}, Members: 1}
	return u
}

// TestAQuestionChargesNothing: judge says what admit would, and leaves all as it
// was; so does an admission for which others would have to give way.
func TestAQuestionChargesNothing(t *testing.T) {
	l := charging(t, 1)
	u := chargedUnit("bound", "new")
	for range 2 {
		if short := l.judge(u); short != nil {
			t.Fatalf("refused: %v", l.quotas.Reasons(short))
		}
		for _, tree := range []string{"Org", "Service"} {
			if l.quotas.Trees().IsAllocated(tree, u.Path) {
				t.Errorf("it is charged to %s", tree)
			}
		}
	}
	if err := l.quotas.Trees().Check(); err != nil {
		t.Error(err)
	}
	if short, _ := l.tryCharge(u); short != nil || !l.quotas.Trees().IsAllocated("Org", u.Path) {
		t.Errorf("an admission charges nothing, and is short of %+v", short)
	}
}

// TestTheEndOfAnAttemptEndsItsCharge: with the limits and with the trees.
func TestTheEndOfAnAttemptEndsItsCharge(t *testing.T) {
	l := charging(t, 1)
	u := chargedUnit("bound", "new")
	used := func() resource.Vector { return l.quotas.Limits().Used("bound", "config") }
	before := used().Clone()
	if short, _ := l.tryCharge(u); short != nil {
		t.Fatalf("refused: %v", l.quotas.Reasons(short))
	}
	a := &work.Attempt{Unit: u, Charges: u.Charges}
	a.Machine, _ = txn.New(resource.NewTxID("u", 1, 1, resource.Nonce{}), nil)
	l.quotas.Limits().Charge(a.Machine.ID(), u.Charge)
	if maps.Equal(used(), before) || !l.quotas.Trees().IsAllocated("Org", u.Path) {
		t.Fatal("it is not charged")
	}
	l.discharge(a)
	if !maps.Equal(used(), before) || l.quotas.Trees().IsAllocated("Org", u.Path) {
		t.Errorf("charged %v, before %v", used(), before)
	}
}

// TestWhoTakesBackIsNotChargedYet: while others have to give way.
func TestWhoTakesBackIsNotChargedYet(t *testing.T) {
	l := NewLeader(Beginning{Epoch: 1, Now: time.Now()})
	object := api.QuotaTree{Metadata: api.ObjectMeta{Name: "Org"}, Spec: []byte(`{"nodes":{"all":{"quota":{"cpu":8}},"a":{"parent":"all","quota":{"cpu":4}},"b":{"parent":"all","quota":{"cpu":4}}}}`)}
	spec, status := charges.SpecOf(object)
	if status != nil {
		t.Fatal(status)
	}
	if _, err := l.quotas.SetTree(object, 1, spec, nil); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"a", "b"} {
		l.objects.Bindings.Set(api.QuotaBinding{Metadata: api.ObjectMeta{Name: namespace}, Spec: api.QuotaBindingSpec{Groups: map[string]string{"Org": namespace}}}, 1)
	}
	for _, name := range []string{"own", "borrowed"} {
		if short, _ := l.tryCharge(chargedUnit("b", name)); short != nil {
			t.Fatalf("%s: %v", name, l.quotas.Reasons(short))
		}
	}
	u := chargedUnit("a", "owner")
	short, _ := l.tryCharge(u)
	if short == nil || len(short.Victims) != 1 {
		t.Fatalf("short of %+v, want one victim", short)
	}
	if l.quotas.Trees().IsAllocated("Org", u.Path) || !l.quotas.Trees().IsAllocated("Org", short.Victims[0]) {
		t.Error("it is charged, or its victim is not")
	}
}

// BenchmarkAdmit is what quota costs one attempt to place a unit: of a
// namespace without quota, and of one that two trees and a limit bound, on
// which it borrows; known already, and for the first time.
func BenchmarkAdmit(b *testing.B) {
	for _, live := range []int{1000, 10_000} {
		l := charging(b, live)
		for _, namespace := range []string{"free", "bound"} {
			b.Run(fmt.Sprintf("%s/live=%d", namespace, live), func(b *testing.B) {
				u := chargedUnit(namespace, "new")
				b.ReportAllocs()
				for b.Loop() {
					if l.judge(u) != nil {
						b.Fatal("refused")
					}
				}
				l.removeConsumer(u)
			})
			b.Run(fmt.Sprintf("%s first/live=%d", namespace, live), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					u := chargedUnit(namespace, "new")
					if l.judge(u) != nil {
						b.Fatal("refused")
					}
					l.removeConsumer(u)
				}
			})
		}
	}
}

// TestAUnitThatIsBeingAdopted is charged without an attempt until its record has landed; claims wait.
func TestAUnitThatIsBeingAdopted(t *testing.T) {
	l := charging(t, 0)
	u := chargedUnit("bound", "adopted")
	u.Record.Phase = string(api.Pending)
	l.work.Units[u.Path] = u
	if short, _ := l.tryCharge(u); short != nil {
		t.Fatal(l.quotas.Reasons(short))
	}
	u.Life.Begin(work.WriteAdoption)

	claimant := chargedUnit("bound", "claimant")
	claimant.Stored = 1
	e := &sched.Evidence{Short: &sched.Shortage{Victims: []string{u.Path}}}
	if l.world().Claim(claimant.Wanted(), &sched.Decision{Evidence: e}) || !strings.Contains(e.NoVictims, "is being adopted") {
		t.Errorf("the claim begins, or waits for %q", e.NoVictims)
	}
	if s := l.quotaExplanation(u); len(s.Reasons) > 0 || len(s.Placements) != 2 || s.Placements[0].Node == "" {
		t.Errorf("it is charged, and explained as %+v", s)
	}
	if e := l.explain(u, Asked{Operator: true}).Answer(); len(e.Quota) > 0 {
		t.Errorf("it lacks quota: %v", e.Quota)
	}
	if err := l.quotas.Trees().Check(); err != nil {
		t.Error(err)
	}
}

// TestTheChargeOfAnAdoptionWakesClaims before the record is durable: trees may name others then.
func TestTheChargeOfAnAdoptionWakesClaims(t *testing.T) {
	for tree, wakes := range map[string]bool{"Org": true, "elsewhere": false} {
		l := charging(t, 0)
		s := sleeps(l, sched.Evidence{Code: sched.Claim, Trees: []string{tree}})
		l.chargeAdopted(chargedUnit("bound", "adopted"), &lost{Grant: grant.Grant{Tx: transaction(1)}})
		if s.woken() != wakes {
			t.Errorf("a claim of %s is woken: %t, want %t", tree, !wakes, wakes)
		}
	}
}
