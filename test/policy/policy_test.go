// Package policy tests the preemptionPolicy of work without one: the default of all
// programs holds, no document and no record has the default, and an older record keeps
// the value of its submission.
package policy

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/test/rig"
)

// TestWorkWithoutAPolicyHasTheDefault: the second allocation, of higher priority and without
// a policy, wants the GPUs of the first. Both leaders decide alike.
func TestWorkWithoutAPolicyHasTheDefault(t *testing.T) {
	for name, c := range map[string]struct {
		configured string
		evicts     bool
	}{
		"no configuration":                   {"", true},
		"PreemptLowerPriority is configured": {api.PreemptLowerPriority, true},
		"OwnQuota is configured":             {api.PreemptOwnQuota, false},
		"Never is configured":                {api.PreemptNever, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := rig.New(t, rig.Options{Configure: func(o *coordinator.Config) { o.PreemptionPolicy = c.configured }})
				k := cluster.Bring(1)
				for priority, name := range []string{"first", "second"} {
					if _, _, err := k.Allocate(t.Context(), rig.Submission{Name: name, GPUs: 8, Priority: int32(priority)}); err != nil {
						t.Fatal(err)
					}
				}
				k.Crash()
				cluster.StartCoordinator("c2")
				cluster.Eventually("there is a leader", func() bool { return cluster.Leader() != nil })
				cluster.Converge()
				a, err := cluster.Leader().GetAllocation(t.Context(), rig.Namespace, "second", 0)
				if err != nil {
					t.Fatal(err)
				}
				if evicts := a.Status.Phase == api.Running; evicts != c.evicts {
					t.Errorf("the second allocation is %s, want an eviction: %t", a.Status.Phase, c.evicts)
				}
				if a.Spec.PreemptionPolicy != "" {
					t.Errorf("the answer has the preemptionPolicy %q, which the document has not", a.Spec.PreemptionPolicy)
				}
				kvs, _, err := cluster.Store.Range(t.Context(), record.UnitsPrefix, store.RangeOptions{})
				if err != nil || len(kvs) != 2 {
					t.Fatalf("%d units, %v", len(kvs), err)
				}
				for _, kv := range kvs {
					u, err := record.Decode[record.Unit](kv.Key, kv.Value)
					if err != nil || u.Admitted != nil {
						t.Errorf("%s has the values %+v beside its document, want none: %v", kv.Key, u.Admitted, err)
					}
				}
			})
		})
	}
}

// TestAnOlderRecordKeepsItsPolicy: a record that has the default of its submission.
func TestAnOlderRecordKeepsItsPolicy(t *testing.T) {
	var older record.Admitted
	if err := json.Unmarshal([]byte(`{"preemptionPolicy":"Never"}`), &older); err != nil {
		t.Fatal(err)
	}
	for document, want := range map[string]string{"": api.PreemptNever, api.PreemptOwnQuota: api.PreemptOwnQuota} {
		spec := api.AllocationSpec{PreemptionPolicy: document}
		if spec.CompleteBy(older.Fill); spec.PreemptionPolicy != want {
			t.Errorf("a document with the policy %q beside an older record has %q, want %q", document, spec.PreemptionPolicy, want)
		}
	}
}
