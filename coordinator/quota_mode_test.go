package coordinator_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// turnMode changes the mode, which must be taken.
func turnMode(t *testing.T, k *rig.Coordinator, mode string) *api.QuotaMode {
	t.Helper()
	got, err := k.PatchQuotaMode(t.Context(), api.QuotaModePatch{Mode: mode, Reason: "test"}, "ada")
	if err != nil || got.Mode != mode || got.By != "ada" || got.Since == "" {
		t.Fatalf("mode %s: %+v, %v", mode, got, err)
	}
	return got
}

// noticed reports whether the answers of a coordinator warn of the mode.
func noticed(k *rig.Coordinator) bool {
	all := k.Notices()
	return len(all) == 1 && strings.Contains(all[0], "Maintenance since") && strings.Contains(all[0], "set by ada (test)")
}

// In Maintenance trees refuse no work, at the leader, after a failover, and for a
// dry run. Each coordinator warns of the mode while it lasts.
func TestMaintenanceOutlivesTheLeader(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		k := laboratory(t, c, 3, "reject")
		f := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
		allocate(t, k, rig.Submission{Namespace: "a", Name: "home", GPUs: 8})
		allocate(t, k, rig.Submission{Namespace: "a", Name: "guest", GPUs: 8})
		over := rig.Submission{Namespace: "a", Name: "over", GPUs: 4}
		if got := refusal(t, k, over); !strings.HasPrefix(got, "403 exceeded quota") {
			t.Errorf("in the mode Normal: %q", got)
		}
		if m, err := k.GetQuotaMode(t.Context()); err != nil || m.Mode != api.ModeNormal || m.Metadata.ResourceVersion != "0" || noticed(k) {
			t.Errorf("at first: %+v, %v, %v", m, err, k.Notices())
		}

		set := turnMode(t, k, api.ModeMaintenance)
		if !noticed(k) {
			t.Errorf("the leader warns of %v", k.Notices())
		}
		c.Eventually("the follower warns", func() bool { return noticed(f) })
		allocate(t, k, over)
		wantSeat(t, c, "a", "over", "a")
		wantSeat(t, c, "a", "guest", "all")

		k.Kill()
		c.Eventually("the follower leads", func() bool { return c.Leader() == f })
		got, err := f.GetQuotaMode(t.Context())
		if err != nil || !cmp.Equal(got, set) || !noticed(f) {
			t.Errorf("after the failover: %+v, %v, want %+v; it warns of %v", got, err, set, f.Notices())
		}
		wantSeat(t, c, "a", "over", "a")
		wantSeat(t, c, "a", "home", "a")
		allocate(t, f, rig.Submission{Namespace: "b", Name: "more", GPUs: 4})
		dry, err := f.TryQuota(t.Context(), []byte(`{"kind": "Consumer", "spec": {"id": "x", "trees": [{"treeName": "Lab", "groupID": "a", "request": {"nvidia.com/gpu": 9}}]}}`), service.Principal{Name: "ada", Admin: true})
		if err != nil || !dry.Admitted {
			t.Errorf("a dry run: %+v, %v", dry, err)
		}
		if root := standing(t, c, "Lab").Nodes[0]; string(root.Allocated[resource.GPU]) != "24" {
			t.Errorf("the dry run has left %+v", root)
		}

		turnMode(t, f, api.ModeNormal)
		if noticed(f) {
			t.Errorf("after Maintenance: %v", f.Notices())
		}
		if got := refusal(t, f, rig.Submission{Namespace: "a", Name: "late", GPUs: 1}); !strings.HasPrefix(got, "403 exceeded quota") {
			t.Errorf("in the mode Normal again: %q", got)
		}
		running(t, c, "a", "over")
		c.Converge()
	})
}

// Whatever becomes of the leader in the middle of the change, the next leader and
// its followers have the mode of the store: the change has happened or it has not.
func TestAChangeOfTheModeHappensOrNot(t *testing.T) {
	for name, after := range map[string]bool{"the leader dies before the write": false, "the leader dies after the write": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
				k := laboratory(t, c, 1, "reject")
				f := c.StartCoordinator("c2")
				c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
				var died atomic.Bool
				c.OnStep(func(s rig.Step) error {
					if s.Coordinator == "c2" {
						return nil
					}
					if s.Name == "txn quota" && s.After == after && died.CompareAndSwap(false, true) {
						go k.Kill()
					}
					if died.Load() {
						return errors.New("the leader died")
					}
					return nil
				})
				_, err := k.PatchQuotaMode(t.Context(), api.QuotaModePatch{Mode: api.ModeMaintenance}, "ada")
				if err == nil {
					t.Error("the change of a leader that died was acknowledged")
				}
				c.OnStep(nil)
				c.Eventually("the follower leads", func() bool { return c.Leader() == f })
				want := api.ModeNormal
				if after {
					want = api.ModeMaintenance
				}
				if got, err := f.GetQuotaMode(t.Context()); err != nil || got.Mode != want {
					t.Errorf("%+v, %v, want %s", got, err, want)
				}
				turnMode(t, f, api.ModeMaintenance) // which may be repeated
				allocate(t, f, rig.Submission{Namespace: "a", Name: "over", GPUs: 8})
				c.Converge()
			})
		})
	}
}
