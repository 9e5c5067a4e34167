package hostile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
)

// honest is a client that creates and deletes small allocations, one after the
// other, and measures how long each takes to run.
type honest struct {
	client *cluster.Client
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	latencies []time.Duration
	failures  []error
	done      chan struct{} // capacity 1: one more has run
}

// patience is how long the honest client waits for one allocation. It is a
// bound on liveness, not on speed.
const patience = time.Minute

// pace is the time between two allocations of the honest client.
const pace = 30 * time.Millisecond

// begin starts the client; names begin with the prefix. The end of the context
// cuts off also the allocation that is under way.
func begin(whole context.Context, c *cluster.Client, prefix string) *honest {
	ctx, cancel := context.WithCancel(whole)
	h := &honest{client: c, cancel: cancel, done: make(chan struct{}, 1)}
	h.wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			took, err := h.once(whole, fmt.Sprintf("%s-%d", prefix, i))
			h.mu.Lock()
			if err != nil {
				h.failures = append(h.failures, err)
			} else {
				h.latencies = append(h.latencies, took)
			}
			h.mu.Unlock()
			select {
			case h.done <- struct{}{}:
			default:
			}
			hold(ctx, pace)
		}
	})
	return h
}

// small is an allocation that fits everywhere many times.
func small(name string) *api.Allocation {
	return &api.Allocation{Metadata: api.ObjectMeta{Name: name}, Spec: api.AllocationSpec{
		Resources: api.Requirements{Requests: map[resource.Name]string{resource.CPU: "100m", resource.Memory: "64Mi"}},
	}}
}

// once runs one allocation and deletes it. The time is that until the client
// knows that it runs.
func (h *honest) once(whole context.Context, name string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(whole, patience)
	defer cancel()
	start := time.Now()
	made, err := h.client.CreateAllocation(ctx, "default", small(name), sdk.CreateOptions{IdempotencyKey: name, Wait: 10 * time.Second})
	for err == nil && made.Status.Phase != api.Running {
		if ctx.Err() != nil || made.Status.Phase != api.Pending && made.Status.Phase != "" {
			return 0, fmt.Errorf("%s is %s after %s: %s", name, made.Status.Phase, time.Since(start).Round(time.Millisecond), made.Status.Message)
		}
		made, err = h.client.GetAllocation(ctx, "default", name, sdk.GetOptions{Wait: 10 * time.Second})
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	took := time.Since(start)
	// One that landed on the attacker may take as long to go as the attacker
	// likes: the answer is all that counts.
	if _, err := h.client.DeleteAllocation(ctx, "default", name, 0); err != nil && !cluster.NotFound(err) {
		return 0, fmt.Errorf("delete %s: %w", name, err)
	}
	return took, nil
}

// await waits until the client has had n more answers, or until within or ctx is
// over.
func (h *honest) await(ctx context.Context, n int, within time.Duration) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for range n {
		select {
		case <-h.done:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// end stops the client and returns what it measured.
func (h *honest) end() (latencies, error) {
	h.cancel()
	h.wg.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return measure(h.latencies), errors.Join(h.failures...)
}

// latencies sum up the time that allocations took to run.
type latencies struct {
	Count    int
	P50, P99 time.Duration
}

func measure(list []time.Duration) latencies {
	if len(list) == 0 {
		return latencies{}
	}
	list = slices.Clone(list)
	slices.Sort(list)
	at := func(percent int) time.Duration { return list[min(len(list)-1, len(list)*percent/100)] }
	return latencies{len(list), at(50), at(99)}
}

// hold waits for d or the end of ctx.
func hold(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
