package long_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/test/long"
)

// skips keeps the reason of a skip, so that this package adds no skipped test
// to the report.
type skips struct {
	testing.TB
	reason string
}

func (s *skips) Skip(args ...any) { s.reason = fmt.Sprint(args...) }

func TestOneVariableChoosesTheSize(t *testing.T) {
	type outcome struct {
		Enabled bool
		Reason  string
		Size    int
	}
	short := outcome{Reason: "in test-long: an hour of seeds", Size: 3}
	for name, c := range map[string]struct {
		value string
		want  outcome
	}{
		"without the variable the short size":    {"", short},
		"another value than 1 is the short size": {"no", short},
		"1 is the long size":                     {"1", outcome{Enabled: true, Size: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(long.Variable, c.value)
			s := &skips{TB: t}
			long.Only(s, "an hour of seeds")
			if diff := cmp.Diff(c.want, outcome{long.Enabled(), s.reason, long.Size(3, 200)}); diff != "" {
				t.Errorf("%s=%q (-want +got):\n%s", long.Variable, c.value, diff)
			}
		})
	}
}
