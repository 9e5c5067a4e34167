package charges

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// Whatever is charged, started and ended, repeated and in any order: the reserved part of a
// quota is the charge of what has not started, and used is the charge of all.
func TestReservedIsTheChargeOfWhatHasNotStarted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		l := New(quota.Options{}, now)
		object, status := api.DecodeResourceQuota([]byte(`{"metadata":{"name":"q","namespace":"ml-dev"},"spec":{"hard":{"nvidia.com/gpu":"100"}}}`))
		if status != nil {
			t.Fatal(status)
		}
		l.SetResourceQuota(*object, 1)
		type charge struct {
			amount  int64
			started bool
		}
		charged := map[resource.TxID]*charge{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			tx := resource.TxID(fmt.Sprintf("tx-%d", rapid.IntRange(0, 4).Draw(t, "tx")))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				amount := rapid.Int64Range(1, 9).Draw(t, "amount")
				l.Charge(tx, "ml", quota.Charge{Group: "ml-dev", Request: resource.Vector{resource.GPU: amount}, Members: 1}, now)
				if charged[tx] == nil {
					charged[tx] = &charge{amount: amount}
				}
			case 1:
				l.Start(tx)
				if c := charged[tx]; c != nil {
					c.started = true
				}
			case 2:
				l.Uncharge(tx, "ml", now)
				delete(charged, tx)
			case 3: // the quota comes again
				l.RemoveResourceQuota("ml-dev", "q")
				l.SetResourceQuota(*object, 1)
			}
			var used, reserved int64
			for _, c := range charged {
				used += c.amount
				if !c.started {
					reserved += c.amount
				}
			}
			s := l.ShowQuota(l.resources["ml-dev/q"]).Status
			want := resource.FormatAmount(resource.GPU, reserved)
			if reserved == 0 {
				want = ""
			}
			if s.Used[resource.GPU] != resource.FormatAmount(resource.GPU, used) || s.Reserved[resource.GPU] != want {
				t.Fatalf("%s reserved of %s used, want %d of %d", s.Reserved[resource.GPU], s.Used[resource.GPU], reserved, used)
			}
		}
	})
}
