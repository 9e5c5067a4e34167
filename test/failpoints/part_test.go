package failpoints_test

import (
	"flag"
	"hash/fnv"
	"os/exec"
	"testing"

	"github.com/musterd/muster/test/long"
)

var (
	every  = flag.Int("failpoints.every", long.Size(10, 1), "tries one of so many faults, and at least one at each point")
	chosen = flag.Uint64("failpoints.part", 0, "draws which faults are tried; 0 takes the commit")
)

// part is the part of the matrix that a run tries. Each commit tries another part, so
// ten commits together try most of the matrix. All faults of a part are faults of the
// whole matrix with the same -failpoints.seed.
type part struct {
	seed  uint64
	every int
}

func newPart(t *testing.T) part {
	t.Helper()
	p := part{seed: *chosen, every: max(1, *every)}
	if p.seed == 0 && p.every > 1 {
		p.seed = ofCommit()
	}
	if p.every > 1 {
		t.Logf("tries one fault of %d, and one at each point; the same ones again: go test ./test/failpoints -run TestAFaultAtEveryStep -args -failpoints.part=%d", p.every, p.seed)
	}
	return p
}

// ofCommit is a number that follows from the commit, 1 outside of a repository.
func ofCommit() uint64 {
	commit, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return 1
	}
	h := fnv.New32a()
	h.Write(commit)
	return max(1, uint64(h.Sum32()))
}

// of chooses from the faults of a point: at least a single fault, and about every
// tenth where every is 10.
func (p part) of(faults []fault) []fault {
	always := drawn(p.seed, faults[0].point.String()).IntN(len(faults))
	var tried []fault
	for i, f := range faults {
		if i == always || drawn(p.seed, f.String()).IntN(p.every) == 0 {
			tried = append(tried, f)
		}
	}
	return tried
}
