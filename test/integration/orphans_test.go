package integration

import "testing"

// TestAStrayProcessKeepsItsCardFromBeingHandedOut drives a real agent through
// the driver's library: a process without a grant, as after a wiped disk, is
// there before the agent starts. Its card stays back until it has ended.
func TestAStrayProcessKeepsItsCardFromBeingHandedOut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	node := c.agents[0].name
	host, act := c.actedHost()
	host.Run(3, 4194303)
	act()
	c.agents[0].start()
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(1)
	c.submit(gang("seven", 1, gpus(7)))
	c.awaitRunning("seven")
	if d := c.device(node, 3); d.Free != 0 {
		t.Errorf("%d of the stray process's card are free", d.Free)
	}
	c.submit(gang("eighth", 1, gpus(1)))
	host.Run(3) // from the next look on, within 10 s
	act()
	c.awaitRunning("eighth")
}
