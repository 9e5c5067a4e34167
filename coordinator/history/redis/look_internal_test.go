package redis

import (
	"context"
	"testing"
	"time"

	"github.com/musterd/muster/resource"
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
