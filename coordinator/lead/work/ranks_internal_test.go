package work

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/topology"
)

// TestTheRanksOfASubgroup: the last subgroup is smaller; a rank beyond the job's end is alone.
func TestTheRanksOfASubgroup(t *testing.T) {
	members := int32(5)
	j := &Job{Doc: &api.Job{Spec: api.JobSpec{Parallelism: &members}}}
	for rank, want := range map[int]Ranks{0: {0, 2}, 1: {0, 2}, 2: {2, 4}, 4: {4, 5}, 6: {6, 7}} {
		u := &Unit{Job: j, Record: record.Unit{Members: 1, FirstMember: rank}}
		u.Demand.Topology = &topology.Rules{Subgroup: 2}
		if got := u.Subgroup(); got != want {
			t.Errorf("rank %d: %v, want %v", rank, got, want)
		}
	}
}
