package redis

import (
	"context"
	"testing"
	"time"

	"github.com/musterd/muster/resource"
	redistest "github.com/musterd/muster/test/redis"
)

// TestKeysOfNodesThatAreGone: a node that is silent and not registered any more leaves no
// keys; one that another coordinator hears does.
func TestKeysOfNodesThatAreGone(t *testing.T) {
	s, err := Open(Options{Address: "unix:///nowhere", Free: func(_ context.Context, node resource.NodeID) (Free, bool, error) {
		return Free{}, node != "gone", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	silent := time.Now().Add(-2 * silence)
	s.written = map[resource.NodeID]time.Time{"gone": silent, "elsewhere": silent, "here": time.Now()}
	s.look(t.Context())
	_, gone := s.take()
	if len(gone) != 1 || gone[0] != "gone" || len(s.written) != 2 {
		t.Errorf("forgets %v, remembers %v", gone, s.written)
	}
	s.putBack(nil, gone)
	s.Offer(Beat{Node: "gone", At: time.Now()}) // it registered anew
	if beats, gone := s.take(); len(beats) != 1 || len(gone) != 0 {
		t.Errorf("writes %v, forgets %v", beats, gone)
	}
}

// TestKeysFromBeforeTheStart: keys of a node that was deleted while no sink ran go too.
func TestKeysFromBeforeTheStart(t *testing.T) {
	server := redistest.Start(t)
	registered := map[resource.NodeID]bool{"here": true, "gone": true}
	open := func() *Sink {
		s, err := Open(Options{Address: server.URL(), Free: func(_ context.Context, node resource.NodeID) (Free, bool, error) {
			return Free{}, registered[node], nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.client.Close() })
		return s
	}
	before := open()
	for node := range registered {
		before.Offer(Beat{Node: node, At: time.Now().Add(-2 * silence)})
	}
	if err := before.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(registered, "gone")
	after := open()
	after.look(t.Context())
	if err := after.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	nodes, err := after.client.ZRange(t.Context(), timestamps, 0, -1).Result()
	if err != nil || len(nodes) != 1 || nodes[0] != "here" {
		t.Errorf("nodes %v, %v; want here alone", nodes, err)
	}
	if n, err := after.client.Exists(t.Context(), heartbeat+"gone").Result(); err != nil || n != 0 {
		t.Errorf("%d keys of the deleted node, %v", n, err)
	}
}
