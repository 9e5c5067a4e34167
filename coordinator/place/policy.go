package place

import (
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// Policy rates nodes. Of two nodes that take a member the better one has the least
// doubt, then the greatest score, then the lowest ID. The search rates nodes of equal
// standing and kind once, so a Policy is a function of its arguments. Doubt keeps no
// member off a node that alone has room, and ascends with the failures: the latest
// attempts of the unit that failed there.
type Policy interface {
	cluster.Rater
	// Prefer returns a score with the points of the preferred terms that the node
	// matches: the score plus Prefer(0, points), which ascends with the points.
	Prefer(score, points int64) int64
}

// preferenceWeight lets one point of preferred affinity outweigh any score, whose
// magnitude is below 1<<47. Points beyond maxPreference, and below its negative, do not
// count.
const (
	preferenceWeight = 1 << 48
	maxPreference    = 1 << 14
)

// doubts is the part of a Policy that all policies share.
type doubts struct{}

// Prefer lets any point outweigh the score.
func (doubts) Prefer(score, points int64) int64 {
	return score + max(-maxPreference, min(points, maxPreference))*preferenceWeight
}

// The parts of a node's doubt, in the order in which they weigh.
const (
	suspected = 1 << iota // gossip believes the node dead
	tripped               // the node does not answer reserves as it should
	avoided               // once for each failed attempt of the unit there

	mostAvoided = 1 << 10
)

// Doubt weighs a failure more than a tripped node, and that more than a suspect
// one.
func (doubts) Doubt(s *cluster.Standing, failures int) int {
	doubt := avoided * min(failures, mostAvoided)
	if s.Suspect {
		doubt |= suspected
	}
	if s.Tripped {
		doubt |= tripped
	}
	return doubt
}

// Packed is the Policy that leaves whole nodes free for large gangs: it prefers the
// node with the least left over, devices before CPU. Work without devices goes
// to nodes that have none.
type Packed struct{ doubts }

// Score is the greater, the less is left over. MIG instances are nothing that a
// request for GPUs could leave over. No host has 1<<16 device-milli (fit.MaxGPUs is
// 64), so a part of 1<<30 of CPU is enough below it.
func (Packed) Score(s *cluster.Standing, _ *cluster.Kind, r *resource.Request) int64 {
	left := s.FreeGPU
	if wanted := r.GPUMilli(); wanted > 0 {
		left -= wanted
	} else {
		left += leftOfMIG(&s.Sums, r)
	}
	return -(int64(left)<<30 + min(int64(s.FreeCPU-r.CPU), 1<<30-1))
}

// leftOfMIG is what a request without GPUs leaves of the node's MIG instances.
func leftOfMIG(f *cluster.Sums, r *resource.Request) resource.Milli {
	if f.FreeMIG == 0 || r.MIG == 0 {
		return f.FreeMIG
	}
	return max(0, f.FreeMIG-resource.Milli(r.MIG)*cluster.SlicesMilli(devices.MIGInstance{Profile: r.MIGProfile}.Slices()))
}

// Spread is the Policy that leaves every node about equally empty: it prefers the node
// with the greatest free part of the amounts that the member asks for. Work without
// devices goes to nodes that have none.
type Spread struct{ doubts }

// Score is the greater, the more of the node is free afterwards.
func (Spread) Score(s *cluster.Standing, k *cluster.Kind, r *resource.Request) int64 {
	free := freeParts(s, k, r)
	sum, asked := int64(0), int64(0)
	for i, wanted := range [...]bool{r.CPU > 0 || r.Cores > 0, r.Memory > 0, r.GPUMilli() > 0} {
		if wanted {
			sum, asked = sum+free[i], asked+1
		}
	}
	score := sum / max(1, asked)
	if r.GPUMilli() == 0 && r.MIG == 0 && k.Full.GPU > 0 {
		score -= 2 * part
	}
	return score
}

// Balanced is the Policy that leaves the used parts of a node's CPU, memory and devices
// near each other, so that none is used up while another one is free. Of equally
// balanced nodes the fuller one is better.
type Balanced struct{ doubts }

// Score is the greater, the nearer the parts are to each other afterwards.
func (Balanced) Score(s *cluster.Standing, k *cluster.Kind, r *resource.Request) int64 {
	free := freeParts(s, k, r)
	least, most, sum := free[0], free[0], free[0]
	for i, full := range [...]bool{k.Full.Memory > 0, k.Full.GPU > 0} {
		if full {
			part := free[1+i]
			least, most, sum = min(least, part), max(most, part), sum+part
		}
	}
	const coarse = part >> 10 // differences below a thousandth are none
	return -((most-least)/coarse<<24 + sum)
}

// part is the whole of an amount, as the free parts count it.
const part = 1 << 20

// freeParts are the parts of the node's CPU, memory and devices that a member leaves
// free, 0 of an amount that the node does not have.
func freeParts(s *cluster.Standing, k *cluster.Kind, r *resource.Request) [3]int64 {
	of := func(free, full int64) int64 {
		if full <= 0 {
			return 0
		}
		return max(0, min(part, free*part/full))
	}
	return [3]int64{
		of(int64(s.FreeCPU-r.CPU)-int64(r.Cores)*int64(resource.WholeCPU), int64(k.Full.CPU)),
		of(int64(s.FreeMemory-r.Memory)>>20, int64(k.Full.Memory)>>20),
		of(int64(s.FreeGPU-r.GPUMilli()), int64(k.Full.GPU)),
	}
}
