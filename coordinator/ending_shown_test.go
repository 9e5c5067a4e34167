package coordinator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// shownEnd is how an allocation's end is shown.
type shownEnd struct {
	At        string
	Grace     int64
	Condition api.Condition
}

func endOf(t *testing.T, k *rig.Coordinator, name string) shownEnd {
	t.Helper()
	a, err := k.GetAllocation(t.Context(), rig.Namespace, name, 0)
	if err != nil || a.Metadata.DeletionGracePeriodSeconds == nil {
		t.Fatalf("%s at %s: %v, %+v", name, k.ID, err, a)
	}
	return shownEnd{a.Metadata.DeletionTimestamp, *a.Metadata.DeletionGracePeriodSeconds, a.Status.Conditions[0]}
}

// TestEveryReadOfATerminatingAllocationShowsItsEnd: at each coordinator, later and at the next leader with the same instant.
func TestEveryReadOfATerminatingAllocationShowsItsEnd(t *testing.T) {
	grace := int64(50)
	for name, c := range map[string]struct {
		begin func(t *testing.T, k *rig.Coordinator, stop func())
		grace int64
		cause string
	}{
		"its owner deletes it": {func(t *testing.T, k *rig.Coordinator, stop func()) {
			stop() // it frees nothing
			if _, err := k.DeleteAllocation(t.Context(), rig.Namespace, "a", api.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
				t.Fatal(err)
			}
		}, 50, "UserRequested"},
		"it is evicted": {func(t *testing.T, k *rig.Coordinator, stop func()) {
			stop()
			if _, _, err := k.Evict(t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: "a", GraceSeconds: &grace}); err != nil {
				t.Fatal(err)
			}
		}, 50, "Evicted"},
		"another takes its place": {func(t *testing.T, k *rig.Coordinator, stop func()) {
			allocate(t, k, pushing("p", 8, 9))
			for {
				if a, err := k.GetAllocation(t.Context(), rig.Namespace, "a", 0); err != nil || a.Status.Phase == api.Terminating {
					break
				}
				pass(10 * time.Millisecond)
			}
			stop()
		}, 30, "Evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, cluster *rig.Cluster) {
				k := cluster.Bring(1)
				f := cluster.StartCoordinator("c2")
				cluster.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
				allocate(t, k, rig.Submission{Name: "a", GPUs: 8, Priority: 1})
				c.begin(t, k, cluster.Agent(resource.NodeID("n1")).Stop)
				want := endOf(t, k, "a")
				at, err := time.Parse(time.RFC3339, want.At)
				if age := time.Since(at); err != nil || age < 0 || age > 2*time.Second || want.Grace != c.grace || want.Condition.Reason != c.cause || want.Condition.Type != "Terminating" {
					t.Errorf("%v, %+v", err, want)
				}
				if diff := cmp.Diff(want, endOf(t, f, "a")); diff != "" {
					t.Errorf("at the follower (-leader +follower):\n%s", diff)
				}
				pass(3 * time.Second)
				if diff := cmp.Diff(want, endOf(t, k, "a")); diff != "" {
					t.Errorf("later (-first +later):\n%s", diff)
				}
				k.Crash()
				cluster.Eventually("the follower leads", func() bool { return cluster.Leader() == f })
				if diff := cmp.Diff(want, endOf(t, f, "a")); diff != "" {
					t.Errorf("at the next leader (-first +next):\n%s", diff)
				}
				cluster.Agent("n1").Start()
				cluster.Converge()
			})
		})
	}
}

func TestADeletedJobShowsWhenThatWas(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
		if _, _, err := k.Job(t.Context(), rig.Submission{Name: "j", GPUs: 1, Members: 2, Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
		c.Converge() // both members are held
		c.Agent("n1").Stop()
		if _, err := k.DeleteJob(t.Context(), rig.Namespace, "j", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, member := range []string{"j-0", "j-1"} { // each end is a write of its own
			c.Eventually("the end of "+member+" is at the follower", func() bool {
				a, err := f.GetAllocation(t.Context(), rig.Namespace, member, 0)
				return err == nil && a.Metadata.DeletionTimestamp != ""
			})
		}
		led, err := k.GetJob(t.Context(), rig.Namespace, "j", 0)
		if err != nil || led.Metadata.DeletionTimestamp == "" || *led.Metadata.DeletionGracePeriodSeconds != 30 {
			t.Fatalf("%v, %+v", err, led)
		}
		followed, err := f.GetJob(t.Context(), rig.Namespace, "j", 0)
		if diff := cmp.Diff(led.Metadata, followed.Metadata); err != nil || diff != "" {
			t.Errorf("%v (-leader +follower):\n%s", err, diff)
		}
		if member := endOf(t, f, "j-1"); member.At != led.Metadata.DeletionTimestamp {
			t.Errorf("member j-1 is deleted at %s, its job at %s", member.At, led.Metadata.DeletionTimestamp)
		}
		c.Agent("n1").Start()
		c.Converge()
	})
}
