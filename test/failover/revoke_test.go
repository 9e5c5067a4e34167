package failover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/wire"
)

// held is one open request of a token's bearer. open is closed once the server has
// answered with something; ended gets the refusal that has ended the request.
type held struct {
	what  string
	open  chan struct{}
	ended chan error
}

// bearer opens requests at coordinators with one token.
type bearer struct {
	t     *testing.T
	c     *cluster.Cluster
	token string
	group sync.WaitGroup
}

// hold opens a request; run ends when the server has ended the request.
func (b *bearer) hold(what string, run func(open func()) error) *held {
	h := &held{what: what, open: make(chan struct{}), ended: make(chan error, 1)}
	var once sync.Once
	b.group.Go(func() { h.ended <- run(func() { once.Do(func() { close(h.open) }) }) })
	return h
}

// client speaks HTTP to a coordinator.
func (b *bearer) client() *http.Client {
	trust, err := sdk.Trust(b.c.CAFile())
	if err != nil {
		b.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: trust}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// events watches by Server-Sent Events. The last event is the refusal.
func (b *bearer) events(ctx context.Context, at *cluster.Process) *held {
	client := b.client()
	return b.hold("events of "+at.Name, func(open func()) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoints(at)+"/api/v1/namespaces/default/allocations?watch=true", nil)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+b.token)
		r.Header.Set("Accept", "text/event-stream")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			open()
			text, _ := strings.CutPrefix(lines.Text(), "data: ")
			var event struct {
				Type   string
				Object api.Status
			}
			if json.Unmarshal([]byte(text), &event) == nil && event.Type == "ERROR" {
				return &event.Object
			}
		}
		return fmt.Errorf("the stream ended without a reason: %w", errors.Join(lines.Err(), errCut))
	})
}

var errCut = errors.New("cut off")

// grpc watches over gRPC.
func (b *bearer) grpc(ctx context.Context, at *cluster.Process) *held {
	trust, err := credentials.NewClientTLSFromFile(b.c.CAFile(), "")
	if err != nil {
		b.t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+at.Address(cluster.RESTPort), grpc.WithTransportCredentials(trust))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	return b.hold("gRPC watch of "+at.Name, func(open func()) error {
		stream, err := apiv1.NewAllocationsClient(conn).Watch(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+b.token), &apiv1.WatchRequest{Namespace: "default"})
		for err == nil {
			if _, err = stream.Recv(); err == nil {
				open()
			}
		}
		if wire.IsRefusal(err) {
			return wire.FromRefusal(err)
		}
		return err
	})
}

// wait waits for an allocation that never runs. Nothing tells the client that the
// coordinator has taken the request, so open says nothing.
func (b *bearer) wait(ctx context.Context, at *cluster.Process, name string) *held {
	k, err := sdk.NewClient(sdk.Config{Endpoint: endpoints(at), Token: b.token, CAFile: b.c.CAFile()})
	if err != nil {
		b.t.Fatal(err)
	}
	return b.hold("wait at "+at.Name, func(open func()) error {
		open()
		_, err := k.Allocations("default").Get(ctx, name, sdk.GetOptions{Wait: service.MaxWait})
		return err
	})
}

// all opens each kind of request at each coordinator, and returns once each is open.
func (b *bearer) all(ctx context.Context, name string, at ...*cluster.Process) []*held {
	var all []*held
	for _, p := range at {
		all = append(all, b.events(ctx, p), b.grpc(ctx, p), b.wait(ctx, p, name))
	}
	for _, h := range all {
		select {
		case <-h.open:
		case err := <-h.ended:
			b.t.Fatalf("%s: %v", h.what, err)
		}
	}
	return all
}

// awaitRefused waits until each request has ended, and wants the 401 of the token.
func (b *bearer) awaitRefused(ctx context.Context, began time.Time, all []*held) {
	b.t.Helper()
	for _, h := range all {
		select {
		case err := <-h.ended:
			var status *api.Status
			if !errors.As(err, &status) || status.Code != http.StatusUnauthorized {
				b.t.Errorf("%s ended with %v, want a 401", h.what, err)
			}
		case <-ctx.Done():
			b.t.Fatalf("%s has not ended: %v", h.what, ctx.Err())
		}
	}
	b.t.Logf("%d requests ended within %v", len(all), time.Since(began).Round(time.Millisecond))
}

// refused wants that a coordinator refuses the token, as soon as it answers at all.
func (b *bearer) refused(ctx context.Context, at *cluster.Process) {
	b.t.Helper()
	k, err := sdk.NewClient(sdk.Config{Endpoint: endpoints(at), Token: b.token, CAFile: b.c.CAFile()})
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = k.WhoAmI(ctx)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !cluster.Definite(err) && ctx.Err() == nil { // the program starts
		<-again.C
		_, err = k.WhoAmI(ctx)
	}
	var status *api.Status
	if !errors.As(err, &status) || status.Code != http.StatusUnauthorized {
		b.t.Errorf("%s answers the bearer of a revoked token with %v", at.Name, err)
	}
}

// newBearer makes a token for a viewer.
func newBearer(t *testing.T, c *cluster.Cluster, at ...*cluster.Process) (b *bearer, id string) {
	t.Helper()
	return newBearerAs(t, c, api.RoleViewer, at...)
}

func newBearerAs(t *testing.T, c *cluster.Cluster, role string, at ...*cluster.Process) (b *bearer, id string) {
	t.Helper()
	made, err := client(t, c, at...).Tokens().Create(t.Context(), api.AccessTokenSpec{User: "ada", Role: role, Tenant: "default"})
	if err != nil {
		t.Fatal(err)
	}
	return &bearer{t: t, c: c, token: made.Status.Token}, made.Metadata.Name
}

// A revocation is acknowledged once every coordinator goes by it: from then on each of
// them refuses the token, and the open watches and waits of its bearer end, at all three
// coordinators. So it is while the leader is dead and nobody leads, and the dead
// coordinator refuses the token once it is back.
func TestARevocationEndsOpenRequestsEverywhere(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Etcd: 1, Agents: 1, Quiet: true})
	leader, epoch := c.AwaitLeader(0)
	followers := c.Followers(leader)
	const never = "never"
	big := &api.Allocation{Metadata: api.ObjectMeta{Name: never}}
	big.Spec.Resources.Requests = map[resource.Name]string{"cpu": "100000"}
	if _, err := client(t, c, leader).Allocations("default").Create(t.Context(), big, sdk.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()

	b, id := newBearer(t, c, followers...)
	open := b.all(ctx, never, c.Coordinators...)
	began := time.Now()
	gone, err := client(t, c, followers[0]).Tokens().Revoke(ctx, id)
	if err != nil || len(gone.Status.NotFollowedBy) != 0 {
		t.Fatalf("revoked: %v, not followed by %v", err, gone)
	}
	for _, p := range c.Coordinators {
		b.refused(ctx, p) // at once: the revocation was acknowledged
	}
	b.awaitRefused(ctx, began, open)
	b.group.Wait()

	b, id = newBearer(t, c, followers...)
	open = b.all(ctx, never, followers...)
	leader.Kill()
	began = time.Now()
	if gone, err = client(t, c, followers...).Tokens().Revoke(ctx, id); err != nil {
		t.Fatalf("revoked while nobody leads: %v", err)
	}
	for _, name := range gone.Status.NotFollowedBy {
		if name != leader.Name {
			t.Errorf("%s, which lives, has not followed the revocation", name)
		}
	}
	for _, p := range followers {
		b.refused(ctx, p)
	}
	b.awaitRefused(ctx, began, open)
	c.AwaitLeader(epoch)
	leader.Start()
	c.AwaitReady()
	b.refused(ctx, leader)
	b.group.Wait()
}
