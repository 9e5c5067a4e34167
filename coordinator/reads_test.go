package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/rig"
)

// Reads take nothing of the leader's loop: while the loop stands still, the leader
// and a follower answer gets, lists and watches.
func TestReadsTakeNothingOfTheLoop(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		leader := c.Bring(2)
		follower := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return follower.Ready(t.Context()) == nil })
		allocate(t, leader, rig.Submission{Name: "a", GPUs: 1})
		if _, _, err := leader.Job(t.Context(), rig.Submission{Name: "j", GPUs: 1, Members: 2}); err != nil {
			t.Fatal(err)
		}
		release := leader.HoldLoop()
		defer release()
		for _, k := range []*rig.Coordinator{leader, follower} {
			reads := map[string]func(context.Context) error{
				"get of an allocation": func(ctx context.Context) error { _, err := k.GetAllocation(ctx, rig.Namespace, "a", 0); return err },
				"list of allocations": func(ctx context.Context) error {
					_, err := k.ListAllocations(ctx, "", service.Page[api.Allocation]{})
					return err
				},
				"get of a job":    func(ctx context.Context) error { _, err := k.GetJob(ctx, rig.Namespace, "j", 0); return err },
				"list of jobs":    func(ctx context.Context) error { _, err := k.ListJobs(ctx, "", service.Page[api.Job]{}); return err },
				"resource quotas": func(ctx context.Context) error { _, err := k.ListResourceQuotas(ctx, ""); return err },
				"quota forests":   func(ctx context.Context) error { _, err := k.ListQuotaForests(ctx); return err },
				"quota bindings":  func(ctx context.Context) error { _, err := k.ListQuotaBindings(ctx); return err },
				"tenants":         func(ctx context.Context) error { _, err := k.ListTenants(ctx); return err },
				"namespaces":      func(ctx context.Context) error { _, err := k.ListNamespaces(ctx); return err },
				"watch": func(ctx context.Context) error {
					w, err := k.Watch(ctx, objects.WatchOptions{Kind: objects.Allocations})
					if err != nil {
						return err
					}
					defer w.Close()
					changes, err := w.Next(ctx)
					if err == nil && len(changes.Events) == 0 {
						err = fmt.Errorf("it begins with %+v", changes)
					}
					return err
				},
			}
			for what, read := range reads {
				ctx, cancel := context.WithTimeout(t.Context(), service.MaxWait)
				if err := read(ctx); err != nil {
					t.Errorf("%s at %s: %v", what, k.ID, err)
				}
				cancel()
			}
		}
	})
}

// A read whose state the coordinator has asks the store nothing: it is answered while
// the store does not answer. A read of the newest state, or of a state that the
// coordinator has not heard of, is not.
func TestReadsOfAStateThatIsThereAskNothing(t *testing.T) {
	bubble(t, rig.Options{}, func(t *testing.T, c *rig.Cluster) {
		leader := c.Bring(2)
		follower := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return follower.Ready(t.Context()) == nil })
		made := allocate(t, leader, rig.Submission{Name: "a", GPUs: 1})
		shown, err := follower.GetAllocation(t.Context(), rig.Namespace, "a", 0)
		if err != nil {
			t.Fatal(err)
		}
		version := func(text string) service.AsOf {
			want, err := service.ParseAsOf(text)
			if err != nil {
				t.Fatal(err)
			}
			return want
		}
		there := version(shown.Metadata.ResourceVersion)
		later := service.AsOf{NotBefore: there.NotBefore + 1_000_000}
		get := func(want service.AsOf) error {
			ctx, cancel := context.WithTimeout(service.WithAsOf(t.Context(), want), service.MaxWait)
			defer cancel()
			got, err := follower.GetAllocation(ctx, rig.Namespace, "a", 0)
			if err == nil && got.Metadata.UID != made.Metadata.UID {
				return fmt.Errorf("the answer has uid %s and not %s", got.Metadata.UID, made.Metadata.UID)
			}
			return err
		}
		list := func(want service.AsOf) error {
			_, err := follower.ListAllocations(t.Context(), "", service.Page[api.Allocation]{AsOf: want})
			return err
		}
		follower.Gate.FailUnder("", errors.New("the store does not answer"))
		for name, c := range map[string]struct {
			state    service.AsOf
			answered bool
		}{
			"the state that is there":         {version("0"), true},
			"a version that it has reached":   {there, true},
			"the newest state":                {version(""), false},
			"a version that no write has yet": {later, false},
		} {
			for what, read := range map[string]func(service.AsOf) error{"get": get, "list": list} {
				if err := read(c.state); (err == nil) != c.answered {
					t.Errorf("%s of %s: %v", what, name, err)
				}
			}
		}
		follower.Gate.FailUnder("", nil)
		for what, read := range map[string]func(service.AsOf) error{"get": get, "list": list} {
			var refused *api.Status
			if err := read(later); !errors.As(err, &refused) || refused.Code != http.StatusGone {
				t.Errorf("%s of a version that the store has not reached: %v, want 410", what, err)
			}
		}
	})
}
