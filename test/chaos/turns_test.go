package chaos

import (
	"maps"
	"slices"
	"testing"

	"github.com/musterd/muster/test/cluster"
)

// partitionsInTurn are the partitions of TestFaultsInTurnLoseNothing, of twelve.
const partitionsInTurn = 4

// TestFaultsInTurnLoseNothing lets a cluster under load meet the faults of the tests
// of `make test-long`, with an audit at the end: each kind of kill once, a paused
// leader, a paused store, partitions drawn by the seed, and a full disk.
func TestFaultsInTurnLoseNothing(t *testing.T) {
	t.Parallel()
	lot := dice(t, 11)
	private, why := cluster.Private()
	var o cluster.Options
	var disk string
	if private {
		disk = smallDisk(t)
		o.AgentDir = on(disk)
	}
	c := start(t, o)
	l := load(c, "t-")
	for i := range kinds {
		what := draw(i, lot)
		kill(c, what, lot)
		l.AwaitProgress(1, "after the kill of "+what)
	}
	pauseLeader(c, l)
	pauseStore(c, l)
	if !private {
		t.Logf("neither partitions nor a full disk: %s", why)
		t.Log(outcomes(finish(t, c, l, "all")), c.Witness.Counts())
		return
	}
	names := slices.Sorted(maps.Keys(partitions))
	lot.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:partitionsInTurn] {
		partitions[name].make(t, c, l, name)
	}
	t.Log(outcomes(fillDisk(t, c, l, disk, 20)), c.Witness.Counts())
	c.Fill("all")
}
