package decisions_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

var update = flag.Bool("update", false, "write the transcript anew")

// TestTranscript writes a log for people to read, with the checker's verdict after
// each line that is wrong: testdata/transcript.txt.
func TestTranscript(t *testing.T) {
	s := newScene()
	big, gang, small := key(3, 1), key(2, 2), key(0, 3)
	s.offer(big, 8)
	s.offerDemand(gang, place.Unit{Members: 4, Request: resource.Request{CPU: 4000, GPUs: 2}, Constraints: constraint.Compile(constraint.Spec{
		NodeSelector: map[string]string{"zone": "a"}, Tolerations: []constraint.Toleration{{Key: "team", Value: "vision"}},
	})})
	s.fail(big, overLimit)
	s.fail(gang, noVictims)
	s.offer(small, 1)
	s.pass()
	s.tracker.Committed("t1", 12)
	s.tracker.Ended("t1", small.Path, "Completed")
	s.room.Freed("ns", []string{"teams"})
	node := newNode("n1", map[string]string{"zone": "a"}, constraint.Taint{Key: "team", Value: "vision", Effect: constraint.NoSchedule})
	node.Refresh()
	s.room.Grew(node, holds(4000))
	s.pass()
	s.hold(big, decisions.Evidence{Why: decisions.InBackoff, Until: 1_700_000_000_000})
	s.offer(key(0, 4), 1)
	s.pass()
	s.room.Grew(node, holds(4000)) // the gang is awake, and is not tried
	s.offer(key(0, 5), 1)
	s.place(key(0, 5), "t3")

	var b strings.Builder
	c := decisions.NewChecker()
	for _, r := range s.log {
		known := len(c.Report().Violations)
		c.Record(r)
		b.Write(decisions.Encode(r))
		for _, v := range c.Report().Violations[known:] {
			fmt.Fprintf(&b, "    %s: %s: %s\n", v.Rule, v.Unit, v.Detail)
		}
	}
	const file = "testdata/transcript.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}
