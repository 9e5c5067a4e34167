package cost_test

import (
	"testing"

	"github.com/musterd/muster/test/philly"
	"github.com/musterd/muster/test/ratchet"
)

// TestAReplayOfJobs: 2,000 jobs of the shape of Philly's trace on 64 hosts. They come
// twelve times as fast as the trace's, so that some hundreds wait as in the trace.
func TestAReplayOfJobs(t *testing.T) {
	const jobs, hosts, press = 2000, 64, 12
	r, err := philly.Replay(philly.Draw(2, jobs, press), hosts, nil)
	if err != nil {
		t.Fatal(err)
	}
	if t.Log(r); r.Ended != jobs || r.LongestQueue < 200 {
		t.Fatalf("%d of %d jobs have ended, and at most %d have waited: want all, and 200", r.Ended, jobs, r.LongestQueue)
	}
	figure := func(unit string, value uint64) ratchet.Figure {
		return ratchet.Figure{Name: "trace/" + unit, Value: int64(value), Unit: unit, Means: "the leader for 2,000 jobs of Philly's shape on 64 hosts; housekeeping judges"}
	}
	hold(t, "trace", []ratchet.Figure{figure("inputs", r.Inputs), figure("passes", r.Passes), figure("trials", r.Trials), figure("judgements", r.Judgements)})
}
