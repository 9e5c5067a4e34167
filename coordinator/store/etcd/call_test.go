package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestWhatIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"an answer":                          {nil, false},
		"no answer in time":                  {unanswered{fmt.Errorf("no answer: %w", context.DeadlineExceeded)}, true},
		"the caller's time is over":          {context.DeadlineExceeded, false},
		"the caller has given up":            {context.Canceled, false},
		"no leader":                          {rpctypes.ErrNoLeader, true},
		"too many requests":                  {rpctypes.ErrTooManyRequests, true},
		"no space":                           {rpctypes.ErrNoSpace, false},
		"no permission":                      {rpctypes.ErrPermissionDenied, false},
		"the server's time is over":          {status.Error(codes.DeadlineExceeded, "context deadline exceeded"), true},
		"the same, as etcd 3.4 says it":      {status.Error(codes.Unknown, "context deadline exceeded"), true},
		"a server that ends, as 3.4 says it": {status.Error(codes.Unknown, "context canceled"), true},
		"what nobody has heard of":           {status.Error(codes.Unknown, "etcdserver: something new"), false},
		"an error of this side":              {errors.New("context deadline exceeded"), false},
	} {
		if got := transient(c.err); got != c.want {
			t.Errorf("%s: %v is asked again: %t, want %t", name, c.err, got, c.want)
		}
	}
}
