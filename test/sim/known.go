package sim

// Known is a set of faults of the real code that this simulation has found and
// that are not mended yet. A run avoids what leads to them, unless told to meet
// them; whoever mends one deletes it here, and its seeds become tests.
type Known uint

// The known faults, with seeds that meet them: make sim SEED=n MEET=name. Those
// that need no broken network or disk come first.
const (
	// StaleRegistration: a process that starts again under the same
	// incarnation serves its leader at once and registers beside that. What the
	// registration read may be old when it is applied: a record that has ended
	// meanwhile, and whose tombstone was forgotten, is adopted again, as
	// STOPPING (seeds 503 at step 960, 1146 at 185) or, if it was read early
	// enough, as HELD.
	StaleRegistration Known = 1 << iota
	// ReleasedInPart: a node that has freed its part of a RELEASING record may
	// hand the devices on. If its disk is lost before the other nodes have
	// freed theirs, it finds both records listed: the RELEASING one may be
	// adopted first, and then the COMMITTED one cannot be (seeds 2373, 3902).
	ReleasedInPart
	// BuriedWhileRunning: at a registration a RELEASING record becomes a
	// tombstone at once where the grant is RESERVED (its COMMITTED was lost
	// with a failed sync or a damaged disk), or where the record's Yes was of
	// an earlier boot, but the grant was adopted and started in this one
	// (seeds 217 at step 308 and 116 at step 269).
	BuriedWhileRunning
	// LateReserve: the network repeats a Reserve, and then the Commit, after the
	// transaction has ended and was forgotten (seed 571). Streams do not.
	LateReserve
)

// KnownNames are the words for them on the command line.
var KnownNames = map[string]Known{
	"stale-registration": StaleRegistration, "released-in-part": ReleasedInPart, "buried-while-running": BuriedWhileRunning,
	"late-reserve": LateReserve,
}

// meets reports whether a run is to meet a known fault.
func (s *Sim) meets(k Known) bool { return s.meet&k != 0 }
