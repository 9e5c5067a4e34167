package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// limited is a rig whose default namespace may have that many GPUs.
func limited(gpus int64, queued bool) rig.Options {
	admission := map[bool]string{true: "queue", false: "reject"}[queued]
	return rig.Options{Namespaces: map[string]lead.Namespace{
		rig.Namespace: {Hard: resource.Vector{resource.GPU: gpus * int64(resource.WholeDevice)}, Admission: admission},
	}}
}

func TestAnAllocationOverTheLimitIsRefusedWithItsNumbers(t *testing.T) {
	bubble(t, limited(100, false), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(13)
		for i := range 12 {
			allocate(t, k, rig.Submission{Name: fmt.Sprint("full-", i), GPUs: 8})
		}
		allocate(t, k, rig.Submission{Name: "two", GPUs: 2})
		_, _, err := k.Allocate(t.Context(), rig.Submission{Name: "a", GPUs: 4})
		var status *api.Status
		if !errors.As(err, &status) || status.Code != 403 || status.Message != "exceeded quota: gpu limit 100, requested 4, used 98" {
			t.Fatalf("error %+v", err)
		}
		want := []resource.Reason{{Code: resource.ReasonQuota, Resource: resource.GPU, Want: 102000, Have: 100000, Detail: status.Message}}
		if diff := cmp.Diff(want, status.Details); diff != "" {
			t.Errorf("details (-want +got):\n%s", diff)
		}
		allocate(t, k, rig.Submission{Name: "a", GPUs: 2}) // exactly the limit, and the name is free
		allocate(t, k, rig.Submission{Namespace: "other", Name: "a", GPUs: 4})
		c.Converge()
	})
}

// stopper holds the leader's loop at its next line about a node, once it is on.
type stopper struct {
	slog.Handler
	on            atomic.Bool
	reached, goOn chan struct{}
}

func (s *stopper) Enabled(context.Context, slog.Level) bool { return true }
func (s *stopper) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *stopper) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "node_connected" && s.on.CompareAndSwap(true, false) {
		close(s.reached)
		<-s.goOn
	}
	return nil
}

func TestOfAllocationsAtOnceOnlyAsManyAsTheLimitAllowsAreAccepted(t *testing.T) {
	o := limited(4, false)
	stop := &stopper{Handler: slog.DiscardHandler}
	o.Configure = func(config *coordinator.Config) { config.Logger = slog.New(stop) }
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		stop.reached, stop.goOn = make(chan struct{}), make(chan struct{})
		stop.on.Store(true)
		c.Agent("n1").Restart()
		<-stop.reached // the leader is busy; requests that come now are taken in at once
		var wg sync.WaitGroup
		codes := make([]int, 10)
		for i := range codes {
			wg.Go(func() {
				_, _, err := k.Allocate(t.Context(), rig.Submission{Name: fmt.Sprint("a", i), GPUs: 1})
				codes[i] = rig.Code(err)
			})
		}
		synctest.Wait()
		close(stop.goOn)
		wg.Wait()
		count := map[int]int{}
		for _, code := range codes {
			count[code]++
		}
		if diff := cmp.Diff(map[int]int{0: 4, 403: 6}, count); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		c.Converge()
	})
}

func TestJobsOverTheLimitWaitUntilQuotaIsFree(t *testing.T) {
	bubble(t, limited(8, false), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(2)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 4})
		j := submit(t, k, rig.Submission{Name: "j", GPUs: 4, Members: 2, Gang: 2})
		if j.Status.Phase != api.Queued || j.Status.Conditions[0].Reason != "QuotaExceeded" ||
			j.Status.Conditions[0].Message != "exceeded quota: gpu limit 8, requested 8, used 4" {
			t.Errorf("%+v", j.Status)
		}
		e, err := k.ExplainJob(t.Context(), rig.Namespace, "j", service.ExplainOptions{Operator: true})
		if err != nil || len(e.Quota) != 1 || e.Summary != "default/j wants 2 members at once, each with 4 GPUs, 4 CPUs and 4Gi of memory: exceeded quota: gpu limit 8, requested 8, used 4." {
			t.Errorf("%v, %+v", err, e)
		}
		c.Converge()
		remove(t, k, "a")
		if j, err = k.GetJob(t.Context(), rig.Namespace, "j", time.Minute); err != nil || j.Status.Phase != api.Running {
			t.Errorf("%v, %+v", err, j)
		}
		c.Converge()
	})
}

func TestANamespaceMayQueueItsAllocations(t *testing.T) {
	bubble(t, limited(4, true), func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		allocate(t, k, rig.Submission{Name: "a", GPUs: 4})
		b := allocate(t, k, rig.Submission{Name: "b", GPUs: 2})
		if b.Status.Phase != api.Pending || b.Status.Message != "exceeded quota: gpu limit 4, requested 2, used 4" {
			t.Errorf("%+v", b.Status)
		}
		k.Stop() // waiting units survive, charges stay
		k = c.StartCoordinator("c2")
		c.AwaitReady(1)
		phase(t, c, "b", api.Pending)
		remove(t, k, "a")
		phase(t, c, "b", api.Running)
		c.Converge()
	})
}
