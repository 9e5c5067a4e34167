package lead

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/topology"
)

// TestTheRanksOfASubgroup: the last subgroup is smaller; a rank beyond the job's end is alone.
func TestTheRanksOfASubgroup(t *testing.T) {
	members := int32(5)
	j := &job{doc: &api.Job{Spec: api.JobSpec{Parallelism: &members}}}
	for rank, want := range map[int]ranks{0: {0, 2}, 1: {0, 2}, 2: {2, 4}, 4: {4, 5}, 6: {6, 7}} {
		u := &unit{job: j, record: record.Unit{Members: 1, FirstMember: rank}}
		u.Demand.Topology = &topology.Rules{Subgroup: 2}
		if got := u.subgroup(); got != want {
			t.Errorf("rank %d: %v, want %v", rank, got, want)
		}
	}
}
