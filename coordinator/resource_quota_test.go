package coordinator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

type quantities = map[resource.Name]string

func resourceQuota(name string, hard quantities, scopes ...string) *api.ResourceQuota {
	return &api.ResourceQuota{
		Kind: api.KindResourceQuota, Metadata: api.ObjectMeta{Name: name, Namespace: rig.Namespace}, Spec: api.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
	}
}

func classes(operator string, values ...string) *api.ScopeSelector {
	return &api.ScopeSelector{MatchExpressions: []api.ScopeExpression{{ScopeName: "PriorityClass", Operator: operator, Values: values}}}
}

// restrict creates a quota that must be taken.
func restrict(t *testing.T, k *rig.Coordinator, q *api.ResourceQuota) *api.ResourceQuota {
	t.Helper()
	made, err := k.CreateResourceQuota(t.Context(), q)
	if err != nil {
		t.Fatalf("resource quota %s: %v", q.Metadata.Name, err)
	}
	return made
}

func TestScopedQuotasHoldWhatFallsUnderThem(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(3)
		restrict(t, k, resourceQuota("long", quantities{resource.GPU: "4"}, "NotTerminating"))
		restrict(t, k, resourceQuota("short", quantities{resource.GPU: "2"}, "Terminating"))
		urgent := resourceQuota("urgent", quantities{"pods": "2"})
		urgent.Spec.ScopeSelector = classes("In", "high-priority")
		restrict(t, k, urgent)
		unnamed := resourceQuota("unnamed", quantities{"memory": "5Gi", "services": "1"})
		unnamed.Spec.ScopeSelector = classes("DoesNotExist")
		restrict(t, k, unnamed)

		allocate(t, k, rig.Submission{Name: "long", GPUs: 4})
		submit(t, k, rig.Submission{Name: "short", GPUs: 1, Members: 1, TTL: "24h"})
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "x", GPUs: 1, Class: "low"})
		refused(t, err, 403, "exceeded quota: gpu limit 4, requested 1, used 4")
		// An allocation with a ttl ends by itself: it is Terminating.
		_, _, err = k.Allocate(t.Context(), rig.Submission{Name: "x", GPUs: 2, TTL: "60s", Class: "low"})
		refused(t, err, 403, "exceeded quota: gpu limit 2, requested 2, used 1")
		for name, c := range map[string]struct {
			s    rig.Submission
			want string
		}{
			"memory": {rig.Submission{Name: "m", GPUs: 1, Members: 1, TTL: "24h"}, "exceeded quota: memory limit 5Gi, requested 1Gi, used 5Gi"},
			"GPUs":   {rig.Submission{Name: "g", GPUs: 2, Members: 1, TTL: "24h", Class: "low"}, "exceeded quota: gpu limit 2, requested 2, used 1"},
		} {
			if j := submit(t, k, c.s); j.Status.Phase != api.Queued || j.Status.Message != c.want {
				t.Errorf("%s: %+v, want %q", name, j.Status, c.want)
			}
			if _, err := k.DeleteJob(t.Context(), rig.Namespace, c.s.Name, api.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		j := submit(t, k, rig.Submission{Name: "j", GPUs: 1, Members: 3, Gang: 3, Class: "high-priority", TTL: "24h"})
		if j.Status.Phase != api.Queued || j.Status.Message != "exceeded quota: gpu limit 2, requested 3, used 1" {
			t.Errorf("%+v", j.Status)
		}
		var got *api.ResourceQuota
		c.Eventually("the agent has told that the allocation has its devices", func() bool {
			got, err = k.GetResourceQuota(t.Context(), rig.Namespace, "long")
			return err != nil || got.Status.Reserved == nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := api.ResourceQuotaStatus{Hard: quantities{resource.GPU: "4"}, Used: quantities{resource.GPU: "4"}, Utilization: quantities{resource.GPU: "100%"}}
		if diff := cmp.Diff(want, got.Status); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		c.Converge()
		if _, err := k.DeleteResourceQuota(t.Context(), rig.Namespace, "short", api.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		c.Eventually("the job waits for the next quota", func() bool {
			j, err := k.GetJob(t.Context(), rig.Namespace, "j", 0)
			return err == nil && j.Status.Message == "exceeded quota: pods limit 2, requested 3, used 0"
		})
		if _, err := k.DeleteResourceQuota(t.Context(), rig.Namespace, "urgent", api.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		if j, err = k.GetJob(t.Context(), rig.Namespace, "j", time.Minute); err != nil || j.Status.Phase != api.Running {
			t.Errorf("%v, %+v", err, j)
		}
		c.Converge()
	})
}

func TestALoweredQuotaBlocksAndIsReported(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		q := resourceQuota("team", quantities{resource.GPU: "6"})
		q.Spec.Soft = quantities{resource.GPU: "3"}
		made := restrict(t, k, q)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 4})
		q.Spec.Hard, q.Metadata.ResourceVersion = quantities{resource.GPU: "3"}, made.Metadata.ResourceVersion
		lowered, err := k.UpdateResourceQuota(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.UpdateResourceQuota(t.Context(), q); rig.Code(err) != 409 {
			t.Errorf("the same version again: %v", err)
		}
		want := []api.Condition{
			{Type: "SoftExceeded", Status: "True", Reason: "AboveSoftLimit", Message: "above the soft limit: nvidia.com/gpu 4 of 3"},
			{Type: "OverLimit", Status: "True", Reason: "AboveHardLimit", Message: "above the hard limit: nothing new is admitted, nothing that runs is ended: nvidia.com/gpu 4 of 3"},
		}
		if diff := cmp.Diff(want, lowered.Status.Conditions); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		j := submit(t, k, rig.Submission{Name: "j", GPUs: 1, Members: 1})
		if j.Status.Phase != api.Queued || j.Status.Message != "exceeded quota: gpu limit 3, requested 1, used 4" {
			t.Errorf("%+v", j.Status)
		}
		k.Crash()
		k = c.StartCoordinator("c2")
		c.AwaitReady(1)
		phase(t, c, "a", api.Running)
		q.Spec.Hard, q.Metadata.ResourceVersion = quantities{resource.GPU: "5"}, ""
		if _, err := k.UpdateResourceQuota(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if j, err = k.GetJob(t.Context(), rig.Namespace, "j", time.Minute); err != nil || j.Status.Phase != api.Running {
			t.Errorf("%v, %+v", err, j)
		}
		c.Converge()
	})
}

func TestTheConfiguredLimitIsAResourceQuotaThatOnlyTheConfigurationChanges(t *testing.T) {
	bubble(t, limited(4, true), func(t *testing.T, c *rig.Cluster) {
		old := record.QuotaKey{Kind: record.QuotaLimits, Name: rig.Namespace}.Key() // as the version before wrote it
		gone := record.QuotaKey{Kind: record.QuotaLimits, Name: "other"}.Key()
		_, err := c.Store.Txn(t.Context(), record.Txn{Then: []record.Op{
			record.Put(old, record.MustEncode(record.QuotaLimit{Namespace: rig.Namespace, Tenant: "t", Hard: resource.Vector{resource.GPU: 1000}})),
			record.Put(gone, record.MustEncode(record.QuotaLimit{Namespace: "other", Tenant: "t", Hard: resource.Vector{resource.GPU: 1000}})),
		}})
		if err != nil {
			t.Fatal(err)
		}
		k := c.Bring(1)
		first, err := k.GetResourceQuota(t.Context(), rig.Namespace, "config")
		if err != nil || first.Spec.Hard[resource.GPU] != "4" {
			t.Fatalf("%v, %+v", err, first)
		}
		kvs, _, err := c.Store.Range(t.Context(), record.QuotaPrefix, store.RangeOptions{})
		if err != nil || len(kvs) != 1 || kvs[0].Key != "/registry/quota/resourcequotas/default/config" {
			t.Errorf("the store has %v, %v", kvs, err)
		}
		_, err = k.UpdateResourceQuota(t.Context(), resourceQuota("config", quantities{resource.GPU: "9"}))
		refused(t, err, 409, "resource quota config of namespace default is set by the coordinators' configuration")
		_, err = k.DeleteResourceQuota(t.Context(), rig.Namespace, "config", api.Preconditions{})
		refused(t, err, 409, "set by the coordinators' configuration")
		restrict(t, k, resourceQuota("team", quantities{resource.GPU: "2"})) // both hold
		allocate(t, k, rig.Submission{Name: "a", GPUs: 4})
		a := phase(t, c, "a", api.Pending)
		if a.Status.Message != "exceeded quota: gpu limit 2, requested 4, used 0" {
			t.Errorf("%+v", a.Status)
		}
		k.Stop()
		k = c.StartCoordinator("c2") // writes nothing, for nothing has changed
		c.Leader()
		again, err := k.GetResourceQuota(t.Context(), rig.Namespace, "config")
		if diff := cmp.Diff(first, again); err != nil || diff != "" {
			t.Errorf("%v, to the next leader (-before +after):\n%s", err, diff)
		}
	})
}

func TestAQuotaThatIsNoLongerConfiguredIsDeleted(t *testing.T) {
	hard := resource.Vector{resource.GPU: 1000}
	o := limited(1, true)
	o.Configure = func(config *coordinator.Config) {
		if config.ID == "c2" {
			config.Namespaces = map[string]lead.Namespace{"other": {Hard: hard}}
		}
	}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		c.Bring(1).Stop()
		k := c.StartCoordinator("c2")
		c.Leader()
		list, err := k.ListResourceQuotas(t.Context(), "")
		if err != nil || len(list.Items) != 1 || list.Items[0].Metadata.Namespace != "other" {
			t.Errorf("%v, %+v", err, list)
		}
	})
}
