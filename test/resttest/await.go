package resttest

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
)

func notFound(kind, key string) error {
	namespace, name := split(key)
	return api.Errorf(http.StatusNotFound, "%s %q not found in namespace %q", kind, name, namespace)
}

// clone copies an object by its encoding, so that a caller owns what it gets.
func clone[T any](v *T) *T {
	out := new(T)
	if err := json.Unmarshal(encode(v), out); err != nil {
		panic(err)
	}
	return out
}

func encode[T any](v *T) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// await returns as soon as done says so, at the latest after wait; c.mu is
// held on entry and on return.
func (c *Cluster) await(ctx context.Context, wait time.Duration, done func() bool) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for wait > 0 && !done() {
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
			c.mu.Lock()
		case <-ctx.Done():
			c.mu.Lock()
			return
		case <-deadline.C:
			c.mu.Lock()
			return
		}
	}
}

// repeat finds what an earlier request with the same id made.
func (c *Cluster) repeat(create rest.Create, kind string) (string, bool) {
	if create.RequestID == "" {
		return "", false
	}
	key, found := c.requests[kind+" "+create.Namespace+" "+create.RequestID]
	if found && create.Repeated != nil {
		*create.Repeated = true
	}
	return key, found
}

func (c *Cluster) remember(create rest.Create, kind, key string) {
	if create.RequestID != "" {
		c.requests[kind+" "+create.Namespace+" "+create.RequestID] = key
	}
}
