package service_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/service"
)

// PostgreSQL takes no text with NUL and none that is not UTF-8: such a query is the
// caller's fault, and not that of the database.
func TestTextsOfAQueryThatNoDatabaseTakesAreRefused(t *testing.T) {
	for _, name := range []string{"continue", "name", "namespace", "state"} {
		for text, allowed := range map[string]bool{
			"train-0": true, "größe": true, strings.Repeat("x", 512): true,
			"a\x00b": false, "\xff": false, strings.Repeat("x", 513): false,
		} {
			var q service.PastQuery
			if err := q.Set(name, text); (err == nil) != allowed {
				t.Errorf("%s=%.20q: %v, want allowed %v", name, text, err, allowed)
			}
		}
	}
}
