package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// Clear releases everything that runs or waits, and waits until it is gone.
func (c *Cluster) Clear() {
	c.t.Helper()
	programs.Eventually(c.t, Patience, "everything is released", func() error {
		s, err := c.look()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		left := 0
		for _, u := range s.units {
			if u.Ended != "" {
				continue
			}
			left++
			if u.Kind == "job" {
				_, err = c.Client.DeleteJob(ctx, u.Namespace, u.Name, 0)
			} else {
				_, err = c.Client.DeleteAllocation(ctx, u.Namespace, u.Name, 0)
			}
			if err != nil && !NotFound(err) {
				return err
			}
		}
		for node, g := range s.grants {
			if len(g.Allocations) > 0 {
				return fmt.Errorf("%s holds %v", node, g.Allocations)
			}
		}
		if left > 0 {
			return fmt.Errorf("%d units were there", left)
		}
		return nil
	})
}

// NotFound reports whether an answer says that there is no such object.
func NotFound(err error) bool {
	var refusal *api.Status
	return errors.As(err, &refusal) && refusal.Code == http.StatusNotFound
}

// Fill runs one gang that takes every device of the cluster, and releases it:
// nothing leaks, and every node takes work. Nothing else may run.
func (c *Cluster) Fill(name string) {
	c.t.Helper()
	gang := Gang(name, len(c.Agents), c.Options.GPUs)
	programs.Eventually(c.t, Patience, "a gang of all devices runs", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		j, err := c.Client.CreateJob(ctx, "default", gang, sdk.CreateOptions{IdempotencyKey: name, Wait: 30 * time.Second})
		if err == nil && j.Status.Phase != api.Running {
			err = fmt.Errorf("it is %+v", j.Status)
		}
		return err
	})
	c.Clear()
}

// Run submits an allocation to the "default" namespace, under its name as
// idempotency key, until it is shown running; that is the answer.
func (c *Cluster) Run(k *Client, a *api.Allocation) *api.Allocation {
	c.t.Helper()
	var made *api.Allocation
	programs.Eventually(c.t, Patience, a.Metadata.Name+" runs", func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		made, err = k.CreateAllocation(ctx, "default", a, sdk.CreateOptions{IdempotencyKey: a.Metadata.Name, Wait: 10 * time.Second})
		if err == nil && made.Status.Phase != api.Running {
			err = fmt.Errorf("it is %+v", made.Status)
		}
		return err
	})
	return made
}
