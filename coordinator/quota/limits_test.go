package quota

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/resource"
)

func TestAdmit(t *testing.T) {
	cases := map[string]struct {
		hard, used, request resource.Vector
		wantDetails         []string
	}{
		"a group without a limit admits anything": {request: resource.Vector{resource.GPU: 1 << 40}},
		"exactly the limit fits": {
			hard: resource.Vector{resource.GPU: 8000}, used: resource.Vector{resource.GPU: 4000}, request: resource.Vector{resource.GPU: 4000},
		},
		"over the limit is refused in the documented sentence": {
			hard: resource.Vector{resource.GPU: 100_000}, used: resource.Vector{resource.GPU: 98_000}, request: resource.Vector{resource.GPU: 4000},
			wantDetails: []string{"exceeded quota: gpu limit 100, requested 4, used 98"},
		},
		"every short resource is named, in order": {
			hard:        resource.Vector{resource.CPU: 1000, resource.Memory: 1 << 30},
			request:     resource.Vector{resource.Memory: 2 << 30, resource.CPU: 1500},
			wantDetails: []string{"exceeded quota: cpu limit 1, requested 1500m, used 0", "exceeded quota: memory limit 1Gi, requested 2Gi, used 0"},
		},
		"an overdrawn resource does not block a request that does not ask for it": {
			hard: resource.Vector{resource.CPU: 1000}, used: resource.Vector{resource.CPU: 5000}, request: resource.Vector{resource.Memory: 1},
		},
		"a limit of zero refuses": {
			hard: resource.Vector{resource.GPU: 0}, request: resource.Vector{resource.GPU: 500},
			wantDetails: []string{"exceeded quota: gpu limit 0, requested 500m, used 0"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := New()
			l.SetLimit("ml", c.hard)
			l.Charge("old", Charge{Group: "ml", Request: c.used})
			var details []string
			for _, r := range l.Admit("ml", c.request) {
				details = append(details, r.Detail)
			}
			if diff := cmp.Diff(c.wantDetails, details); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
		})
	}
}

// Usage equals the sum over a naive set under any history of charges and
// discharges, repeated ones included.
func TestUsageIsASetOfTransactions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New()
		naive := map[resource.TxID]Charge{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			tx := resource.TxID(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "tx")))
			if rapid.Bool().Draw(t, "charge") {
				c := Charge{Group: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "group"), Request: resource.Vector{resource.CPU: rapid.Int64Range(0, 5000).Draw(t, "cpu")}}
				l.Charge(tx, c)
				if _, dup := naive[tx]; !dup {
					naive[tx] = c
				}
			} else {
				l.Discharge(tx)
				delete(naive, tx)
			}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			for _, g := range []string{"a", "b"} {
				var want int64
				for _, c := range naive {
					if c.Group == g {
						want += c.Request[resource.CPU]
					}
				}
				if got := l.Used(g)[resource.CPU]; got != want {
					t.Fatalf("group %s uses %d, want %d", g, got, want)
				}
			}
		}
	})
}
