package wire_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/wire"
)

// Each row of the table goes to gRPC and comes back as it was.
func TestEveryOutcomeSurvivesBothWays(t *testing.T) {
	for _, row := range api.Outcomes() {
		t.Run(row.Reason, func(t *testing.T) {
			want := api.Errorf(row.HTTP, "because of %s", row.Reason).Because(row.Reason)
			want.Details = []resource.Reason{{Code: resource.ReasonInsufficient, Resource: "cpu", Want: 2, Have: 1}}
			want.Causes = []api.Cause{{Field: "spec.a", Message: "1 is outside 2..3"}, {Field: "spec.b", Message: "required"}}
			want.RetryAfterSeconds, want.RequestID = 3, "r-1"
			err := wire.ToRefusal(want)
			if d := cmp.Diff(want, wire.FromRefusal(err)); d != "" || !wire.IsRefusal(err) {
				t.Errorf("(-want +got)\n%s", d)
			}
			var code codes.Code
			if unmarshalErr := code.UnmarshalJSON([]byte(`"` + row.GRPC + `"`)); unmarshalErr != nil || status.Code(err) != code {
				t.Errorf("the code is %s (%v), the table has %s", status.Code(err), unmarshalErr, row.GRPC)
			}
		})
	}
}

// An error of gRPC itself has no details; each code has an HTTP code.
func TestEveryCodeOfGRPCIsAStatus(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		err := status.Error(code, "by gRPC")
		got := wire.FromRefusal(err)
		if wire.IsRefusal(err) || got.Code < 400 || got.Code > 599 || got.Message != "by gRPC" {
			t.Errorf("%s is %+v", code, got)
		}
		known := code != codes.Unknown && code != codes.DataLoss && code != codes.Internal
		if known && got.Code == 500 {
			t.Errorf("%s is an internal error", code)
		}
	}
	if got := wire.FromRefusal(errors.New("text")); got.Code != 500 {
		t.Errorf("an error that is none of gRPC's is %+v", got)
	}
	if got := wire.FromRefusal(context.DeadlineExceeded); got == nil {
		t.Error("a deadline is no refusal")
	}
	if got := wire.FromRefusal(nil); got != nil {
		t.Errorf("no error is %+v", got)
	}
}
