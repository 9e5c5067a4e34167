package rpc

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterd/muster/resource"
)

// A host that claims ever new names, which is possible without TLS, takes no
// memory without bound, and its names share one budget in the end.
func TestSpendingIsRememberedOfSoManyNodes(t *testing.T) {
	var s spending
	now := time.Unix(1_000_000_000, 0)
	allowed := 0
	for i := range maxSpenders + 1000 {
		if ok, _ := s.allow(resource.NodeID(fmt.Sprint("n", i)), Registrations, now); ok {
			allowed++
		}
	}
	if len(s.spenders) > maxSpenders+1 || allowed != maxSpenders+Registrations.Burst {
		t.Errorf("%d nodes are remembered and %d acts were allowed, want %d and %d", len(s.spenders), allowed, maxSpenders+1, maxSpenders+Registrations.Burst)
	}
	later := now.Add(idleAfter + time.Second)
	if ok, _ := s.allow("another", Registrations, later); !ok || len(s.spenders) > 1 {
		t.Errorf("allowed %t, and %d nodes are remembered after they were idle", ok, len(s.spenders))
	}
}
