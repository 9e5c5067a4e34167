package sim

import "math/rand/v2"

// Parts are what happens in some runs and not in others. A seed draws each with
// numbers of its own, so that a run is the same whichever of the parts that it
// does not draw exist.
type Parts uint

// The parts. A run without any has the usual faults only.
const (
	// Restores: the store goes back to a backup, once.
	Restores Parts = 1 << iota
	// Evictions: units are evicted, by an operator or for others.
	Evictions
	// Fences: machines are switched off, nodes fenced and confirmed dead.
	Fences
	// Stragglers: processes outlive their workload.
	Stragglers
	// Liars: the agent of one host lies.
	Liars
	// Claims: quota is short, and units claim it back. Only with Evictions.
	Claims
	// LostDevices: units that hold a lost device are evicted. Only with Evictions.
	LostDevices
	// Modes: an operator changes the mode of the quota trees.
	Modes
	// Edits: clients suspend their units and let them go on, move them to other queues,
	// and resize their jobs.
	Edits
	// Rules: units have rules about other units.
	Rules
	// Trees: an operator changes the limits of the quota tree.
	Trees
	// Alternatives: units have an alternative to their request.
	Alternatives
	// Lines: an operator changes the rules of queues.
	Lines
	// Domains: gangs run in one rack each.
	Domains
	// Sets: the last member of a gang asks for other amounts than the others.
	Sets
	// Users: clients are users, and limits bound each of them.
	Users
	// Heals: gangs go on without members whose nodes are confirmed dead. Only with Fences.
	Heals
	// Subgroups: of gangs in one rack some have the members of each subgroup in one rack, in
	// place of all. Only with Domains.
	Subgroups
)

// salts are the numbers with which parts are drawn.
var salts = map[Parts]uint64{
	Restores: 0x726573746f7265, Evictions: 0x6576696374, Fences: 0x66656e6365, Stragglers: 0x7374726179, Liars: 0x6c69617273,
	Claims: 0x636c61696d73, LostDevices: 0x6c6f7374, Modes: 0x6d6f646573,
	Edits: 0x6564697473, Rules: 0x72756c6573, Trees: 0x7472656573, Alternatives: 0x656c7365, Lines: 0x6c696e6573, Domains: 0x7261636b,
	Users: 0x7573657273, Sets: 0x73657473, Heals: 0x6865616c73, Subgroups: 0x7061697273,
}

// draw returns whether a run has a part, with the numbers that it is drawn from.
// One with a planted bug has what the bug needs, and nothing else.
func (o Options) draw(p Parts, times, of int) (*rand.Rand, bool) {
	rng := rand.New(rand.NewPCG(o.Seed, salts[p]))
	drawn := rng.IntN(of) < times
	switch {
	case o.Bug != NoBug && o.Bug.needs()&p == 0, o.Only != 0 && o.Only&p == 0:
		return rng, false
	case o.Bug != NoBug && p != Restores, o.All:
		return rng, true
	}
	return rng, drawn
}
