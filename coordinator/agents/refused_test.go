package agents_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

func TestARefusalForAHigherEpochIsDelivered(t *testing.T) {
	n := newNetwork()
	agent := n.listen(t, "a:1")
	pool, events := newPool(t, n)
	pool.SetTarget("n1", "a:1")
	for _, r := range []*musterv1.Reason{
		{Code: "StaleEpoch", Want: 42, Have: 42}, // not higher: nothing is delivered
		{Code: "Quarantined", Want: 99},
		{Code: "StaleEpoch", Want: 43, Have: 42},
	} {
		stream, _ := agent.accept(t)
		s, err := status.New(codes.FailedPrecondition, "epoch 42 is over").WithDetails(r)
		if err != nil {
			t.Fatal(err)
		}
		stream.err = s.Err()
		close(stream.finish)
	}
	if e := next[grant.Refused](t, events); e.Node != "n1" || e.Highest != 43 {
		t.Errorf("refused: %+v", e)
	}
}
