package desk

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

func TestRequestIDsExpireInTheOrderTheyCame(t *testing.T) {
	r := NewMemory(100)
	start := time.Now()
	key := func(i int) record.RequestDigest { return record.DigestOfRequest("t", fmt.Sprint(i)) }
	for i := range 100 {
		r.Remember(key(i), record.Remembered{}, start.Add(time.Duration(i)*time.Second))
	}
	r.Forget(key(10))
	r.Remember(key(20), record.Remembered{}, start.Add(100*time.Second)) // used again: its time begins anew
	r.Expire(start.Add(50 * time.Second))
	for i := range 100 {
		if _, known := r.Get(key(i)); known != (i >= 50 || i == 20) {
			t.Errorf("id %d is known: %t", i, known)
		}
	}
	r.Expire(start.Add(time.Hour))
	if len(r.byKey) != 0 || len(r.added) != r.head {
		t.Errorf("%d ids and %d entries are left", len(r.byKey), len(r.added)-r.head)
	}
}

// However ids come, go and expire, the counts are those of the keys.
func TestRequestIDsAreCountedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewMemory(100)
		now := time.Unix(1_700_000_000, 0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := record.DigestOfRequest(resource.TenantID(rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "tenant")), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "id"))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				r.Forget(k)
			case 1:
				now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
				r.Expire(now.Add(-2 * time.Second))
			default:
				r.Remember(k, record.Remembered{}, now)
			}
			want := map[record.TenantDigest]int{}
			for k := range r.byKey {
				want[k.Tenant()]++
			}
			if !maps.Equal(want, r.ofTenant) {
				t.Fatalf("counted %v, want %v", r.ofTenant, want)
			}
		}
	})
}
