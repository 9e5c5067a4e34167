package resttest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// submit submits an allocation of so many CPUs.
func submit(t *testing.T, c *resttest.Cluster, name, cpus string, wait time.Duration) *api.Allocation {
	t.Helper()
	document := []byte(`{"metadata":{"name":"` + name + `"},"spec":{"resources":{"requests":{"cpu":"` + cpus + `"}}}}`)
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		t.Fatal(status)
	}
	a, err := c.CreateAllocation(t.Context(), service.Create{Namespace: "a", Document: document, Wait: wait}, doc)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWhatIsEvictedEndsWithItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 4, Memory: 4 << 30})
		submit(t, c, "old", "3", 0)
		grace, start := int64(20), time.Now()
		if _, err := c.PreemptAllocation(t.Context(), "a", api.PreemptionRequest{TargetAllocation: "old", GracePeriodSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
		next := submit(t, c, "next", "2", time.Minute)
		if waited := time.Since(start); next.Status.Phase != api.Running || waited != 20*time.Second {
			t.Errorf("next is %s after %v, want Running after the grace of 20s", next.Status.Phase, waited)
		}
		old, err := c.GetAllocation(t.Context(), "a", "old", 0)
		if err != nil || old.Status.Phase != api.Preempted {
			t.Errorf("old: %+v, %v", old, err)
		}
	})
}

func TestAWaitEndsThoughTheClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fixed := time.Date(2024, 1, 15, 10, 30, 0, 0, time.UTC)
		c := resttest.New(func() time.Time { return fixed }, resttest.Node{Name: "n", CPUs: 4, Memory: 4 << 30})
		start := time.Now()
		if a := submit(t, c, "large", "5", 3*time.Second); a.Status.Phase != api.Pending || time.Since(start) != 3*time.Second {
			t.Errorf("%s after %v, want Pending after 3s", a.Status.Phase, time.Since(start))
		}
	})
}
