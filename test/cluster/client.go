package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// ErrUnknown: no coordinator gave a definite answer in time. What was asked for
// may have happened, or may yet.
var ErrUnknown = errors.New("no definite answer")

// Client asks one coordinator after the other until one gives a definite
// answer. It may be used by several goroutines.
type Client struct {
	endpoints []*sdk.Client
	next      atomic.Int32 // the one that answered last
	// attempt bounds one request to one coordinator, beyond what it may wait.
	attempt time.Duration
	// once: what has no definite answer is not sent again.
	once bool
	// Repeated counts requests that had to be sent again.
	Repeated atomic.Int64
}

// Once returns a client that sends every request once, the next one to the next
// coordinator if there was no definite answer.
func (c *Cluster) Once() *Client {
	k := c.NewClient()
	k.once = true
	return k
}

// NewClient returns a client with connections of its own. Each begins with
// another coordinator.
func (c *Cluster) NewClient() *Client { return c.ClientOf(adminToken) }

// ClientOf is NewClient with another token than the administrator's.
func (c *Cluster) ClientOf(token string) *Client {
	k := &Client{attempt: 3 * time.Second}
	k.next.Store(c.clients.Add(1) % int32(len(c.Coordinators)))
	for _, p := range c.Coordinators {
		k.endpoints = append(k.endpoints, c.endpointOf(p, token))
	}
	return k
}

// At returns a client of one coordinator alone.
func (c *Cluster) At(p *Process) *Client {
	return &Client{attempt: 3 * time.Second, endpoints: []*sdk.Client{c.endpoint(p)}}
}

func transport() *http.Transport {
	return &http.Transport{DialContext: (&net.Dialer{Timeout: time.Second}).DialContext, MaxIdleConnsPerHost: 64}
}

// Definite reports whether an answer says what became of a request: success, or
// a refusal that is not for lack of a leader or of the store.
func Definite(err error) bool {
	var refusal *api.Status
	return err == nil || errors.As(err, &refusal) && refusal.Code >= 400 && refusal.Code < 500
}

// ask sends a request until its answer is definite or ctx ends. The request
// must be safe to repeat. wait is how long the server may take its time.
func ask[T any](ctx context.Context, k *Client, wait time.Duration, send func(context.Context, *sdk.Client) (*T, error)) (*T, error) {
	at := k.next.Load()
	var last error
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for tried := int32(0); ; tried++ {
		i := (at + tried) % int32(len(k.endpoints))
		bounded, cancel := context.WithTimeout(ctx, k.attempt+wait)
		v, err := send(bounded, k.endpoints[i])
		cancel()
		if Definite(err) {
			k.next.Store(i)
			return v, err
		}
		last = err
		if k.once {
			k.next.Store(i + 1)
			return nil, fmt.Errorf("%w: %w", ErrUnknown, last)
		}
		k.Repeated.Add(1)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnknown, last)
		case <-pause.C:
		}
	}
}

// CreateAllocation submits an allocation under an idempotency key.
func (k *Client) CreateAllocation(ctx context.Context, namespace string, a *api.Allocation, o sdk.CreateOptions) (*api.Allocation, error) {
	return ask(ctx, k, o.Wait, func(ctx context.Context, c *sdk.Client) (*api.Allocation, error) {
		return c.Allocations(namespace).Create(ctx, a, o)
	})
}

// GetAllocation reads one.
func (k *Client) GetAllocation(ctx context.Context, namespace, name string, o sdk.GetOptions) (*api.Allocation, error) {
	return ask(ctx, k, o.Wait, func(ctx context.Context, c *sdk.Client) (*api.Allocation, error) {
		return c.Allocations(namespace).Get(ctx, name, o)
	})
}

// DeleteAllocation releases one. One that is not there may have been released
// by an earlier try.
func (k *Client) DeleteAllocation(ctx context.Context, namespace, name string, grace int64) (*api.Allocation, error) {
	return ask(ctx, k, 0, func(ctx context.Context, c *sdk.Client) (*api.Allocation, error) {
		return c.Allocations(namespace).Delete(ctx, name, api.DeleteOptions{GracePeriodSeconds: &grace})
	})
}

// Evict ends an allocation, or the unit of a job's member, under notice.
func (k *Client) Evict(ctx context.Context, namespace, name string, grace int64) (*api.Preemption, error) {
	return ask(ctx, k, 0, func(ctx context.Context, c *sdk.Client) (*api.Preemption, error) {
		return c.Preempt(ctx, namespace, api.PreemptionRequest{TargetAllocation: name, GracePeriodSeconds: &grace})
	})
}

// CreateJob submits a job under an idempotency key.
func (k *Client) CreateJob(ctx context.Context, namespace string, j *api.Job, o sdk.CreateOptions) (*api.Job, error) {
	return ask(ctx, k, o.Wait, func(ctx context.Context, c *sdk.Client) (*api.Job, error) {
		return c.Jobs(namespace).Create(ctx, j, o)
	})
}

// DeleteJob ends a job and removes it.
func (k *Client) DeleteJob(ctx context.Context, namespace, name string, grace int64) (*api.Job, error) {
	return ask(ctx, k, 0, func(ctx context.Context, c *sdk.Client) (*api.Job, error) {
		return c.Jobs(namespace).Delete(ctx, name, api.DeleteOptions{GracePeriodSeconds: &grace})
	})
}

// Nodes lists the nodes.
func (k *Client) Nodes(ctx context.Context) (*api.NodeList, error) {
	return ask(ctx, k, 0, func(ctx context.Context, c *sdk.Client) (*api.NodeList, error) {
		return c.Nodes().List(ctx, sdk.ListOptions{})
	})
}

// PutResourceQuota creates a namespace's quota or replaces it.
func (k *Client) PutResourceQuota(ctx context.Context, namespace string, q *api.ResourceQuota) (*api.ResourceQuota, error) {
	return ask(ctx, k, 0, func(ctx context.Context, c *sdk.Client) (*api.ResourceQuota, error) {
		made, err := c.ResourceQuotas(namespace).Update(ctx, q)
		var refusal *api.Status
		if errors.As(err, &refusal) && refusal.Code == http.StatusNotFound {
			return c.ResourceQuotas(namespace).Create(ctx, q)
		}
		return made, err
	})
}
