package enroll

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/resource"
)

// TestRenewalsOfANodeAreBounded: a node in a hot loop gets ten certificates, then a single
// certificate each minute; another node and a later minute are free.
func TestRenewalsOfANodeAreBounded(t *testing.T) {
	var r renewals
	now := time.Unix(1_700_000_000, 0)
	got := 0
	for range 881 {
		now = now.Add(10 * time.Millisecond)
		if err := r.take("n1", 24*time.Hour, now); err == nil {
			got++
		} else if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
	if got != renewalBurst {
		t.Errorf("%d certificates in 9 s, want %d", got, renewalBurst)
	}
	if err := r.take("n2", 24*time.Hour, now); err != nil {
		t.Errorf("another node: %v", err)
	}
	if err := r.take("n1", 24*time.Hour, now.Add(renewalEvery)); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	if err := r.take("n1", 24*time.Hour, now.Add(renewalEvery)); err == nil {
		t.Error("two in the minute after the burst")
	}
	for i := range 2 * renewing {
		if err := r.take(resource.NodeID(fmt.Sprint("m", i)), 24*time.Hour, now); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.nodes) > renewing {
		t.Errorf("%d nodes are remembered, want at most %d", len(r.nodes), renewing)
	}
}
