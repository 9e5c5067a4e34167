package coordinator_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/rig"
)

// usedOf are the allocations, jobs and waiting units of a namespace that a coordinator
// shows.
func usedOf(t *testing.T, k *rig.Coordinator, namespace string) [3]int64 {
	t.Helper()
	n, err := k.GetNamespace(t.Context(), namespace)
	if err != nil || n.Status.Used == nil {
		t.Fatalf("%+v, %v", n, err)
	}
	u := n.Status.Used
	return [3]int64{*u.Allocations, *u.Jobs, *u.WaitingUnits}
}

// The count quotas of a namespace hold at once, after a failover, and for changes; all
// coordinators show the same use.
func TestCountQuotasOverAFailover(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
		most, bytes := int64(3), int64(10)
		n := &api.Namespace{Metadata: api.ObjectMeta{Name: rig.Namespace}, Spec: api.NamespaceSpec{Limits: &api.NamespaceCounts{Allocations: &most, AnnotationBytes: &bytes}}}
		written, err := k.PutNamespace(t.Context(), n, true)
		if err != nil || written.Status.Hard == nil || *written.Status.Hard.Allocations != 3 || *written.Status.Hard.DocumentBytes != 64<<20 {
			t.Fatalf("%+v, %v", written, err)
		}
		allocate(t, k, rig.Submission{Name: "a", GPUs: 1})
		submit(t, k, rig.Submission{Name: "gang", GPUs: 9, Members: 2, Gang: 2})
		for name, at := range map[string]*rig.Coordinator{"the leader": k, "a follower": f} {
			c.Eventually(name+" shows the use", func() bool { return usedOf(t, at, rig.Namespace) == [3]int64{3, 1, 1} })
		}
		const full = "429 namespace default has 3 allocations and may have 3: there is no room for 1 more"
		if got := refusal(t, k, rig.Submission{Name: "b", GPUs: 1}); !strings.HasPrefix(got, full) {
			t.Errorf("got %q", got)
		}

		k.Kill()
		c.Eventually("the follower leads", func() bool { return c.Leader() == f })
		if got := refusal(t, f, rig.Submission{Name: "b", GPUs: 1}); !strings.HasPrefix(got, full) {
			t.Errorf("after the failover: got %q", got)
		}
		text := "too long for ten"
		_, err = f.PatchAllocation(t.Context(), rig.Namespace, "a", api.WorkPatch{Annotations: api.MapPatch{Set: map[string]*string{"n": &text}}})
		if err == nil || !strings.Contains(err.Error(), "namespace default has annotations of 0 bytes and may have 10: there is no room for 17 more") {
			t.Errorf("a change: %v", err)
		}
		if _, err := f.DeleteJob(t.Context(), rig.Namespace, "gang", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Eventually("the job gives its room back", func() bool { return usedOf(t, f, rig.Namespace) == [3]int64{1, 0, 0} })
		if got := refusal(t, f, rig.Submission{Name: "b", GPUs: 1, RequestID: "b"}); got != "" {
			t.Error(got)
		}
		c.Converge()
	})
}
