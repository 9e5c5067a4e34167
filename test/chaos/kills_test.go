package chaos

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/long"
)

// killsOfARound is how many kills there are between two audits.
const killsOfARound = 25

func TestKillingAnythingUnderLoadLosesNothing(t *testing.T) {
	long.Only(t, "a cluster of its own; TestFaultsInTurnLoseNothing kills each kind of process once")
	t.Parallel()
	lot := dice(t, 1)
	c := start(t, cluster.Options{})
	done, began := map[string]int{}, time.Now()
	for round, left := 0, *kills; left > 0; round++ {
		l := load(c, fmt.Sprintf("r%d-", round))
		for range min(left, killsOfARound) {
			what := draw(*kills-left, lot)
			kill(c, what, lot)
			done[what]++
			l.AwaitProgress(1, "after the kill of "+what)
			left--
		}
		operations := finish(t, c, l, fmt.Sprintf("all-%d", round))
		t.Logf("%d of %d kills after %s: %v; %s; store: %+v", *kills-left, *kills, time.Since(began).Round(time.Second),
			done, outcomes(operations), c.Witness.Counts())
	}
}

// kinds are what can be killed, and how often of a hundred.
var kinds = []struct {
	name  string
	share int
}{
	{"the leader", 25}, {"a follower", 10}, {"a member of the store", 20}, {"an agent", 30}, {"an agent and its kernel", 10}, {"an agent and its disk", 5},
}

// draw says what the kill of this number hits: everything once, then by lot.
func draw(number int, lot *rand.Rand) string {
	if number < len(kinds) {
		return kinds[number].name
	}
	at := lot.IntN(100)
	for _, k := range kinds {
		if at -= k.share; at < 0 {
			return k.name
		}
	}
	return kinds[0].name
}

// kill hits a process of a kind, and starts the process again after a while.
func kill(c *cluster.Cluster, what string, lot *rand.Rand) {
	leader, _ := c.AwaitLeader(0)
	agent := c.Agents[lot.IntN(len(c.Agents))]
	victim := agent.Process
	switch what {
	case "the leader":
		victim = leader
	case "a follower":
		followers := c.Followers(leader)
		victim = followers[lot.IntN(len(followers))]
	case "a member of the store":
		victim = c.Etcd[lot.IntN(len(c.Etcd))]
	case "an agent and its kernel":
		c.LosePower(agent)
	case "an agent and its disk":
		c.Wipe(agent)
	}
	victim.Kill()
	hold(time.Duration(lot.IntN(400)) * time.Millisecond)
	victim.Restart()
}
