package quota

import "time"

// Options change the model where people disagree with it. The zero value is
// the model as documented; each option has an example of its own.
type Options struct {
	// EvictAtHard lets an arriving consumer evict at a hard node whom it could
	// evict at the root. Without it an owner below a hard inner node cannot
	// claim back what a sibling's consumer borrowed there.
	EvictAtHard bool
	// Settle lets a consumer that slides down after a departure go on to the
	// lowest node with room. Without it each departure moves it one node.
	Settle bool
	// IgnoreOverdrawn lets a consumer pass a node that is over quota in a
	// resource it does not ask for. Without it nothing passes such a node.
	IgnoreOverdrawn bool
	// FewestVictims evicts the lowest priority first and the newest within
	// one, then gives back whom the newcomer does not need. Without it the
	// oldest goes first and nobody is given back.
	FewestVictims bool
	// PinnedWithinQuota keeps unpreemptable consumers on their own group: they
	// never borrow and are never pushed up. Without it one may borrow, and
	// then blocks its lenders for as long as it runs.
	PinnedWithinQuota bool
	// MinRunTime protects a consumer from eviction until it has been allocated
	// for so long, by the time given to SetNow. With it a search for victims
	// takes as long as the list it searches.
	MinRunTime time.Duration
}
