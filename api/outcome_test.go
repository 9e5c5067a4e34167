package api_test

import (
	"testing"

	"github.com/musterd/muster/api"
)

func TestEachReasonHasOneRow(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range api.Outcomes() {
		if seen[row.Reason] {
			t.Errorf("%s has two rows", row.Reason)
		}
		seen[row.Reason] = true
		if got := api.OutcomeOf(&api.Status{Code: row.HTTP, Reason: row.Reason}); got != row {
			t.Errorf("%s is found as %+v", row.Reason, got)
		}
		if back := api.OutcomeOfGRPC(row.GRPC); back.GRPC != row.GRPC {
			t.Errorf("%s is found as %+v", row.GRPC, back)
		}
	}
}

func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		status *api.Status
		reason string
		grpc   string
	}{
		"a change that another one outran":  {api.Errorf(409, "x"), "Conflict", "ABORTED"},
		"a name that is taken":              {api.Errorf(409, "x").Because(api.AlreadyExists), "AlreadyExists", "ALREADY_EXISTS"},
		"a state that forbids the request":  {api.Errorf(409, "x").Because(api.FailedPrecondition), "FailedPrecondition", "FAILED_PRECONDITION"},
		"a leader that was lost":            {api.Errorf(503, "x").Because(api.LeaderLost), "LeaderLost", "UNAVAILABLE"},
		"a document that cannot be granted": {api.Errorf(422, "x"), "Unprocessable", "INVALID_ARGUMENT"},
		"a reason of a later version":       {api.Errorf(403, "x").Because("QuotaExceeded"), "QuotaExceeded", "PERMISSION_DENIED"},
		"a reason under another code":       {api.Errorf(404, "x").Because(api.AlreadyExists), "AlreadyExists", "NOT_FOUND"},
		"a code without a row":              {api.Errorf(418, "x"), "InternalError", "INTERNAL"},
	} {
		t.Run(name, func(t *testing.T) {
			if row := api.OutcomeOf(c.status); c.status.Reason != c.reason || row.GRPC != c.grpc {
				t.Errorf("reason %s, %+v; want %s, %s", c.status.Reason, row, c.reason, c.grpc)
			}
		})
	}
}
