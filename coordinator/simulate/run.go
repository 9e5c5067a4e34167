package simulate

import (
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/resource"
)

// Run is the outcome of one policy on one order of arrivals.
type Run struct {
	Arrived, Placed int // pods
	// Curve is the GPU that is allocated, in percent of the cluster's, after requests
	// for as many percent of its GPUs have arrived: the mean over the pods whose arrival
	// rounds to the percentage; negative where there is none.
	Curve []float64
}

// At is the allocated GPU after requests for a percentage have arrived: that of the
// nearest lower percentage at which a pod arrived, 0 where there is none.
func (r *Run) At(percent int) float64 {
	for x := min(percent, len(r.Curve)-1); x >= 0; x-- {
		if r.Curve[x] >= 0 {
			return r.Curve[x]
		}
	}
	return 0
}

// Play has the pods arrive on the empty cluster, one after the other, under the policy
// with the name (place.Policies). The mix of work is learned from nothing. progress,
// where it is not nil, is called with the number of pods so far; where it returns false
// the run ends early.
func (c *Cluster) Play(pods []Pod, policy string, progress func(done int) bool) Run {
	var learner place.Learner
	state := c.state()
	var run Run
	var asked, allocated int64
	var sums, counts []int64
	for i, u := range units(pods) {
		if progress != nil && i%256 == 0 && !progress(i) {
			break
		}
		learner.Observe(&u)
		u.Policy = learner.Policy(policy, state)
		mark := state.Checkpoint()
		_, placed := place.Place(state, u)
		state.Keep(mark)
		run.Arrived++
		asked += pods[i].gpu()
		if placed {
			run.Placed++
			allocated += pods[i].gpu()
		}
		x := int((asked*100 + c.capacity/2) / c.capacity)
		for len(sums) <= x {
			sums, counts = append(sums, 0), append(counts, 0)
		}
		sums[x] += allocated
		counts[x]++
	}
	run.Curve = make([]float64, len(sums))
	for x := range sums {
		if run.Curve[x] = -1; counts[x] > 0 {
			run.Curve[x] = float64(sums[x]*100) / float64(counts[x]*c.capacity)
		}
	}
	return run
}

// GPUs is how many GPUs the cluster has.
func (c *Cluster) GPUs() int { return int(c.capacity / int64(resource.WholeDevice)) }

// Nodes is how many nodes the cluster has.
func (c *Cluster) Nodes() int { return len(c.nodes) }
