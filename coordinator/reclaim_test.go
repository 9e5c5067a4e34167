package coordinator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// reclaim asks for the units to end and checks them, as "Kind consumer node".
func reclaim(t *testing.T, c *rig.Cluster, dryRun bool, want ...string) *api.QuotaReclaim {
	t.Helper()
	got, err := c.Leader().ReclaimQuota(t.Context(), "Lab", dryRun, nil)
	if err != nil {
		t.Fatalf("reclaim (dry run %t): %v", dryRun, err)
	}
	var units []string
	for _, u := range got.Units {
		units = append(units, u.Kind+" "+u.Consumer+" "+u.Node)
	}
	if diff := cmp.Diff(want, units); diff != "" || got.DryRun != dryRun || got.Kind != api.KindQuotaReclaim || got.Tree != "Lab" {
		t.Errorf("reclaim (dry run %t) (-want +got):\n%s\n%+v", dryRun, diff, got)
	}
	return got
}

// over lists the nodes that a tree shows over quota, as "node".
func over(t *testing.T, c *rig.Cluster) string {
	t.Helper()
	var nodes []string
	for _, n := range standing(t, c, "Lab").Nodes {
		if len(n.OverQuota) > 0 {
			nodes = append(nodes, n.Name)
		}
	}
	return strings.Join(nodes, " ")
}

// living are the allocations that run, jobs' members included.
func living(t *testing.T, c *rig.Cluster) string {
	t.Helper()
	list, err := c.Leader().ListAllocations(t.Context(), "", service.Page[api.Allocation]{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range list.Items {
		if a.Status.Phase == api.Running {
			names = append(names, a.Metadata.Namespace+"/"+a.Metadata.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestALoweredLimitIsReclaimedWhenAnOperatorAsks(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 3, "queue")
		allocate(t, k, rig.Submission{Namespace: "b", Name: "low", GPUs: 2, Priority: 1})
		allocate(t, k, rig.Submission{Namespace: "b", Name: "old", GPUs: 2, Priority: 5})
		allocate(t, k, rig.Submission{Namespace: "b", Name: "stone", GPUs: 2, Quota: &api.QuotaDemand{Unpreemptable: true}})
		submit(t, k, rig.Submission{Namespace: "a", Name: "j", GPUs: 4, Members: 2})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "guest", GPUs: 2})
		all := "a/guest a/j-0 a/j-1 b/low b/old b/stone"
		c.Eventually("all run", func() bool { return living(t, c) == all })
		reclaim(t, c, false) // nothing is over
		c.Converge()

		plant(t, k, "Lab", "all nil 9", "a all 8", "b all 4")
		c.Converge()
		if got := over(t, c); got != "all b" || living(t, c) != all {
			t.Errorf("over quota are %q, %s run; want all and b, and nobody ended", got, living(t, c))
		}
		before := standing(t, c, "Lab")
		want := []string{"Allocation b/low b", "Job a/j all"} // of j one member would do; then guest need not end
		got := reclaim(t, c, true, want...)
		if diff := cmp.Diff([]api.QuotaOverdraft{
			{Node: "b", Over: map[resource.Name]string{resource.GPU: "2"}}, {Node: "all", Over: map[resource.Name]string{resource.GPU: "7"}},
		}, got.Nodes); diff != "" || len(got.Remaining) > 0 || got.Units[1].Request[resource.GPU] != "8" || got.Units[0].Priority != 1 ||
			got.Summary != "quota tree Lab: nodes b, all are over quota; 1 job and 1 allocation would end" {
			t.Errorf("%+v\n%s", got, diff)
		}
		c.Converge()
		if diff := cmp.Diff(before, standing(t, c, "Lab")); diff != "" || living(t, c) != all {
			t.Errorf("a dry run ended somebody: %s run\n%s", living(t, c), diff)
		}

		c.Tap(func(m rig.Message) bool { return m.FromAgent.GetReply() == nil }) // they go on stopping
		got = reclaim(t, c, false, want...)
		if got.Summary != "quota tree Lab: nodes b, all are over quota; 1 job and 1 allocation told to end" {
			t.Errorf("%+v", got)
		}
		c.Eventually("the units are RELEASING", func() bool { return releasing(c) == 3 })
		for _, r := range c.Records() {
			node := map[string]string{"a": "all", "b": "b"}[r.Unit.Namespace]
			if r.State == grant.RecordReleasing && (r.Reason != "reclaimed: node "+node+" of quota tree Lab is over its quota" || r.GraceSeconds != 30) {
				t.Errorf("record %+v", r)
			}
		}
		got = reclaim(t, c, false) // the ending units are enough
		if len(got.Nodes) != 2 || got.Summary != "quota tree Lab: nodes b, all are over quota; what is ending already makes room enough" {
			t.Errorf("%+v", got)
		}
		k.Crash()
		k = c.StartCoordinator("c2")
		c.AwaitReady(3)
		reclaim(t, c, false) // to the next leader too
		k.Crash()
		c.Tap(nil)
		c.StartCoordinator("c3")
		c.AwaitReady(3)
		c.Eventually("those have ended", func() bool { return living(t, c) == "a/guest b/old b/stone" })
		if got := over(t, c); got != "" {
			t.Errorf("over quota are still %q", got)
		}
		if j, err := c.Leader().GetJob(t.Context(), "a", "j", 0); err != nil || j.Status.Phase != api.Cancelled || j.Status.Message != "reclaimed: node all of quota tree Lab is over its quota" {
			t.Errorf("the job: %+v, %v", j, err)
		}
		wantSeat(t, c, "a", "guest", "a")
		got = reclaim(t, c, false)
		if len(got.Nodes) != 0 {
			t.Errorf("%+v", got)
		}
		c.Converge()
	})
}

// releasing counts the records that are.
func releasing(c *rig.Cluster) (n int) {
	for _, r := range c.Records() {
		if r.State == grant.RecordReleasing {
			n++
		}
	}
	return n
}

func TestWhatMustNotBeEvictedRemainsOverQuota(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 1, "queue")
		allocate(t, k, rig.Submission{Namespace: "a", Name: "stone", GPUs: 4, Quota: &api.QuotaDemand{Unpreemptable: true}})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "sand", GPUs: 1, Priority: 1000})
		plant(t, k, "Lab", "all nil 16", "a all 3", "b all 8")
		got := reclaim(t, c, false, "Allocation a/sand a")
		if diff := cmp.Diff([]api.QuotaOverdraft{{Node: "a", Over: map[resource.Name]string{resource.GPU: "1"}}}, got.Remaining); diff != "" ||
			got.Summary != "quota tree Lab: node a is over quota; 1 allocation told to end; node a stays so, held there by what must not be evicted" {
			t.Errorf("%+v\n%s", got, diff)
		}
		c.Eventually("sand has ended", func() bool { return living(t, c) == "a/stone" })
		got = reclaim(t, c, false)
		if got.Summary != "quota tree Lab: node a is over quota; node a stays so, held there by what must not be evicted" {
			t.Errorf("%+v", got)
		}
		_, err := k.ReclaimQuota(t.Context(), "Nowhere", true, nil)
		refused(t, err, 404, "quota tree Nowhere not found")
		c.Converge()
	})
}

// TestAReclaimThatTheStoreDidNotTakeIsAskedAgain loses the first write of an
// end: no client gets the answer that it happened.
func TestAReclaimThatTheStoreDidNotTakeIsAskedAgain(t *testing.T) {
	for name, s := range map[string]rig.Submission{
		"allocation": {Namespace: "a", Name: "x", GPUs: 6}, "job": {Namespace: "a", Name: "x", GPUs: 6, Members: 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
				k := laboratory(t, c, 1, "queue")
				if s.Members == 0 {
					allocate(t, k, s)
				} else {
					submit(t, k, s)
				}
				c.Eventually("it runs", func() bool { return living(t, c) != "" })
				plant(t, k, "Lab", "all nil 16", "a all 3", "b all 8")
				lost := 0
				k.Gate.OnTxn(func(record.Txn) rig.Fault {
					if lost++; lost == 1 {
						return rig.Lost
					}
					return rig.None
				})
				grace := int64(7)
				for range 5 {
					if _, err := k.ReclaimQuota(t.Context(), "Lab", false, &grace); err == nil {
						break
					} else if rig.Code(err) != 503 {
						t.Fatal(err)
					}
				}
				c.Eventually("it has ended", func() bool { return living(t, c) == "" && over(t, c) == "" })
				if lost < 2 {
					t.Errorf("%d writes", lost)
				}
				c.Converge()
			})
		})
	}
}
