// Package policy tests the preemptionPolicy of work without one: the default of all
// programs holds, no document and no record has the default, and an older record keeps
// the value of the submission.
package policy

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

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

// TestAnOlderRecordKeepsItsPolicy: a record with the default of its submission.
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

// TestPreemptionsCountOverAnElection: a victim, and a unit evicted by a person.
func TestPreemptionsCountOverAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := rig.New(t, rig.Options{})
		k := cluster.Bring(2)
		for priority, name := range []string{"first", "second"} {
			if _, _, err := k.Allocate(t.Context(), rig.Submission{Name: name, GPUs: 8, Priority: int32(priority)}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := k.Allocate(t.Context(), rig.Submission{Name: "urgent", GPUs: 8, Priority: 9}); err != nil {
			t.Fatal(err)
		}
		cluster.Converge()
		grace := int64(1)
		if _, err := k.PreemptAllocation(t.Context(), rig.Namespace, api.PreemptionRequest{TargetAllocation: "second", InitiatedBy: "ada", GracePeriodSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
		cluster.Converge()
		before, err := k.ClusterUtilization(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		k.Crash()
		cluster.StartCoordinator("c2")
		cluster.Eventually("there is a leader", func() bool { return cluster.Leader() != nil })
		cluster.Converge()
		after, err := cluster.Leader().ClusterUtilization(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b, a := before.Scheduling.PreemptionsLast1h, after.Scheduling.PreemptionsLast1h; b != 2 || a != 2 {
			t.Errorf("before the election %d preemptions, after it %d, want 2", b, a)
		}
		<-time.NewTimer(61 * time.Minute).C
		if after, err = cluster.Leader().ClusterUtilization(t.Context()); err != nil || after.Scheduling.PreemptionsLast1h != 0 {
			t.Errorf("an hour later %d preemptions, want 0: %v", after.Scheduling.PreemptionsLast1h, err)
		}
	})
}
