package rig

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/musterd/muster/api"
)

// TestNothingUndoesACreationUnderWay: a request about an object follows the creation
// of that object, also where the store does not have the creation yet.
func TestNothingUndoesACreationUnderWay(t *testing.T) {
	one := Submission{Name: "a", GPUs: 8}
	set := Submission{Name: "a", GPUs: 4, Members: 2, Gang: 2}
	for name, c := range map[string]struct {
		made Submission
		ask  func(ctx context.Context, k *Coordinator) error
	}{
		"an allocation is deleted": {made: one, ask: func(ctx context.Context, k *Coordinator) error {
			_, err := k.DeleteAllocation(ctx, Namespace, "a", api.DeleteOptions{})
			return err
		}},
		"an allocation is suspended": {made: one, ask: func(ctx context.Context, k *Coordinator) error {
			_, err := k.PatchAllocation(ctx, Namespace, "a", api.WorkPatch{Spec: json.RawMessage(`{"suspend":true}`)})
			return err
		}},
		"a job is cancelled": {made: set, ask: func(ctx context.Context, k *Coordinator) error {
			_, err := k.CancelJob(ctx, Namespace, "a", api.DeleteOptions{})
			return err
		}},
		"a job is deleted": {made: set, ask: func(ctx context.Context, k *Coordinator) error {
			_, err := k.DeleteJob(ctx, Namespace, "a", api.DeleteOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rigged := New(t, Options{})
				k := rigged.Bring(1)
				asked := make(chan struct{}, 1)
				rigged.Tap(func(m Message) bool {
					if m.FromAgent.GetReply() == nil {
						return true
					}
					select {
					case asked <- struct{}{}:
					default:
					}
					return false // the answer is lost
				})
				answered := make(chan error)
				go func() {
					var err error
					if c.made.Members > 0 {
						_, _, err = k.Job(t.Context(), c.made)
					} else {
						_, _, err = k.Allocate(t.Context(), c.made)
					}
					answered <- err
				}()
				<-asked
				rigged.Tap(nil)
				if err := c.ask(t.Context(), k); err != nil {
					t.Errorf("the request: %v", err)
				}
				if err := <-answered; err != nil {
					t.Errorf("the creation: %v", err)
				}
				rigged.Converge()
			})
		})
	}
}
