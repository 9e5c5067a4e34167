package lead_test

import (
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
)

// A leader that knows no node is asked for an allocation. The leader has the
// allocation written to the store, with its place in the queue; the effects are
// values, and nothing has happened yet.
func Example() {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	l := lead.NewLeader(lead.Beginning{
		Rules: lead.Rules{NamespaceAllocations: 10}, Epoch: 2, MaxOps: 128, Now: now,
	})
	effects, err := l.Load(now, lead.Loaded{}, nil)
	if err != nil {
		panic(err)
	}
	document := []byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`)
	allocation, status := api.DecodeAllocation(document)
	if status != nil {
		panic(status)
	}
	request := lead.CreateAllocation{Submitted: lead.Submitted{Namespace: "default", Document: document}, Document: allocation, Wait: time.Minute}
	effects = l.Apply(now, lead.ClientRequest{Token: 1, Request: request}, effects[:0])
	effects = l.Pass(now, effects)
	for _, e := range effects {
		switch e.Kind {
		case post.WakeAt:
			fmt.Println("wake at", e.At.Format(time.TimeOnly))
		case post.WriteKeys:
			for _, op := range e.Write.Ops {
				fmt.Println("write", op.Key)
			}
		}
	}
	// Output:
	// wake at 12:01:00
	// write /registry/units/default/alloc/a/0
	// write /registry/order/default/7fffffff/0000000000000002.0000000000000001/default/alloc/a/0
}
