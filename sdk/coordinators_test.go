package sdk_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/restserver"
	"github.com/musterd/muster/test/resttest"
)

// coordinators are servers of one cluster.
type coordinators struct {
	cluster *resttest.Cluster
	url     []string
	kill    []func() // ends a server with all its connections
}

func startCoordinators(t *testing.T, n int, nodes ...resttest.Node) *coordinators {
	t.Helper()
	c := &coordinators{cluster: resttest.New(time.Now, nodes...)}
	for range n {
		handler, stop := restserver.New(c.cluster, token)
		server := httptest.NewServer(handler)
		ended := false
		c.url = append(c.url, server.URL)
		c.kill = append(c.kill, func() {
			if !ended {
				ended = true
				server.CloseClientConnections()
				stop()
				server.Close()
			}
		})
	}
	t.Cleanup(func() {
		for _, kill := range c.kill {
			kill()
		}
	})
	return c
}

func (c *coordinators) client(t *testing.T) *sdk.Client {
	t.Helper()
	return connect(t, strings.Join(c.url, ","), token)
}

// write stores change n of an allocation as the leader would.
func (c *coordinators) write(name string, n int) error {
	unit := record.Unit{
		UID: resource.UnitUID("uid-" + name), Kind: record.AllocUnit, Namespace: "ml", Name: name, Tenant: "ml", Queue: "default", Phase: string(api.Pending), Members: 1,
		Document: fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"change":"%d"}},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, name, n),
	}
	_, err := c.cluster.Store().Txn(context.Background(), record.Txn{Then: []record.Op{record.Put(unit.Path().Key(), record.MustEncode(unit))}})
	return err
}

// TestAWatchOutlivesItsCoordinators: of 10,000 changes each arrives once and in its
// order, though the coordinator that serves the watch is killed twice.
func TestAWatchOutlivesItsCoordinators(t *testing.T) {
	const changes, allocations, ahead = 10_000, 50, 500
	c := startCoordinators(t, 3)
	client := c.client(t)
	list, err := client.Allocations("ml").List(t.Context(), sdk.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kills := map[int]bool{3_000: true, 7_000: true}
	killed := make(chan struct{}, len(kills)) // one for each
	written := make(chan error, 1)
	go func() {
		for n := range changes {
			if kills[n-ahead] { // most of the changes after a kill are written after it
				<-killed
			}
			if err := c.write("a"+strconv.Itoa(n%allocations), n); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	asked := map[string]bool{}
	n := 0
	for change, err := range client.Allocations("ml").Watch(t.Context(), sdk.WatchOptions{After: list.Metadata.ResourceVersion}) {
		if err != nil {
			t.Fatalf("after %d changes: %v", n, err)
		}
		got := change.Object.Metadata
		if want := "a" + strconv.Itoa(n%allocations); got.Name != want || got.Labels["change"] != strconv.Itoa(n) {
			t.Fatalf("change %d is %s %s with change=%s, id %s; want %s", n, change.Type, got.Name, got.Labels["change"], change.ID, want)
		}
		if added := n < allocations; added != (change.Type == "ADDED") || change.Present {
			t.Fatalf("change %d is %s, present %t", n, change.Type, change.Present)
		}
		asked[client.Endpoint()] = true
		if n++; kills[n] {
			for i, url := range c.url {
				if url == client.Endpoint() {
					c.kill[i]()
				}
			}
			killed <- struct{}{}
		}
		if n == changes {
			break
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if len(asked) != 3 {
		t.Errorf("the watch was served by %d coordinators, want 3", len(asked))
	}
}
