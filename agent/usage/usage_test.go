package usage_test

import (
	"context"
	"strings"
	"testing"

	"github.com/musterd/muster/agent/usage"
)

func TestAHostUsesSomething(t *testing.T) {
	s := usage.NewSampler(t.TempDir())
	u, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if u.Memory <= 0 || u.Disk <= 0 || u.CPU < 0 || u.Load1 < 0 {
		t.Errorf("measured %+v", u)
	}
	if again, err := s.Sample(t.Context()); err != nil || again.CPU < 0 {
		t.Errorf("second measurement: %+v, %v", again, err)
	}
}

func TestAPartThatCannotBeMeasuredIsNamedAndTheRestIsThere(t *testing.T) {
	u, err := usage.NewSampler("/nowhere/at/all").Sample(context.Background())
	if err == nil || !strings.Contains(err.Error(), "disk /nowhere/at/all") {
		t.Errorf("got %v, want the disk named", err)
	}
	if u.Memory <= 0 || u.Disk != 0 {
		t.Errorf("measured %+v", u)
	}
}
