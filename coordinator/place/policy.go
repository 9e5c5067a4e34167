package place

import (
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// Policy rates nodes. Of two nodes that take a member the better one has the least
// doubt, then the greatest score, then the lowest ID. The search rates nodes of equal
// standing once, so a Policy is a function of its arguments.
type Policy interface {
	// Score rates a node of this standing that may have room for a member.
	Score(*cluster.Standing, *resource.Request) int64
	// Prefer returns a score with the points of the preferred terms that the node
	// matches. It ascends with the points.
	Prefer(score, points int64) int64
	// Doubt is why a node is the last choice whatever its score, 0 for none.
	// failures counts the latest attempts of the unit that failed there. It ascends
	// with the failures. Doubt keeps no member off a node that alone has room.
	Doubt(s *cluster.Standing, failures int) int
}

// Packed is the Policy that leaves whole nodes free for large gangs: it prefers the
// node with the least left over, devices before CPU. Work without devices goes
// to nodes that have none.
type Packed struct{}

// preferenceWeight lets one point of preferred affinity outweigh any packing:
// Score is above -(1<<48), for no host has 1<<16 device-milli (fit.MaxGPUs is
// 64). Points beyond maxPreference, and below its negative, do not count.
const (
	preferenceWeight = 1 << 48
	maxPreference    = 1 << 14
)

// Score is the greater, the less is left over. MIG instances are nothing that a
// request for GPUs could leave over.
func (Packed) Score(s *cluster.Standing, r *resource.Request) int64 {
	left := s.FreeGPU
	if wanted := resource.Milli(r.GPUs)*resource.WholeDevice + r.GPUShare; wanted > 0 {
		left -= wanted
	} else {
		left += leftOfMIG(&s.Sums, r)
	}
	return -(int64(left)<<32 + min(int64(s.FreeCPU-r.CPU), 1<<32-1))
}

// leftOfMIG is what a request without GPUs leaves of the node's MIG instances.
func leftOfMIG(f *cluster.Sums, r *resource.Request) resource.Milli {
	if f.FreeMIG == 0 || r.MIG == 0 {
		return f.FreeMIG
	}
	return max(0, f.FreeMIG-resource.Milli(r.MIG)*cluster.SlicesMilli(devices.MIGInstance{Profile: r.MIGProfile}.Slices()))
}

// Prefer lets any point outweigh the packing.
func (Packed) Prefer(score, points int64) int64 {
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
func (Packed) Doubt(s *cluster.Standing, failures int) int {
	doubt := avoided * min(failures, mostAvoided)
	if s.Suspect {
		doubt |= suspected
	}
	if s.Tripped {
		doubt |= tripped
	}
	return doubt
}
