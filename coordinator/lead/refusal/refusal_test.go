package refusal_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/record"
)

// TestARefusalOfTheStoreHasTheStoresReason: only changes by others are a conflict.
func TestARefusalOfTheStoreHasTheStoresReason(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		code   int
		reason string
		says   string
	}{
		"changed by others": {nil, 409, "Conflict", "node n changed 8 times before the deletion could be made; ask again"},
		"without space":     {fmt.Errorf("txn: %w", record.ErrNoSpace), 503, api.StoreOutOfSpace, "out of space"},
		"another refusal":   {errors.New("no such user"), 503, "ServiceUnavailable", "no such user"},
		"too large":         {&record.TooLargeError{}, 422, "Unprocessable", "node n: "},
		"too many keys":     {&record.TooManyOpsError{}, 422, "Unprocessable", "node n: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusal.Overtaken("node n", "deletion", 8, c.err, "; ask again")
			if got.Code != c.code || got.Reason != c.reason || !strings.Contains(got.Message, c.says) {
				t.Errorf("%d %s %q, want %d %s with %q", got.Code, got.Reason, got.Message, c.code, c.reason, c.says)
			}
		})
	}
	if got := refusal.NotTaken("job j", "cancellation", nil); got.Code != 503 || strings.Contains(got.Message, "nil") {
		t.Errorf("overtaken once: %d %q, want a 503 without an error's text", got.Code, got.Message)
	}
}
