package chaos

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/long"
)

// lasting is how long a partition holds: half as long again as the leader's
// lease, so that one that costs the leader its office does.
const lasting = 3 * time.Second

// parts are the hosts of a cluster as partitions see them.
type parts struct {
	leader, followers, coordinators, store, agents []*cluster.Host
}

func partsOf(c *cluster.Cluster) parts {
	leader, _ := c.AwaitLeader(0)
	return parts{
		leader: cluster.Hosts(leader), followers: cluster.Hosts(c.Followers(leader)...), coordinators: cluster.Hosts(c.Coordinators...),
		store: cluster.Hosts(c.Etcd...), agents: c.AgentHosts(),
	}
}

// all are the hosts of the cluster.
func (p parts) all() []*cluster.Host {
	return slices.Concat(p.coordinators, p.store, p.agents)
}

// partition is one kind of it.
type partition struct {
	faults func(p parts) []cluster.Fault
	// stalls: nothing can be granted until it heals.
	stalls bool
	// flaps: it comes and goes every second.
	flaps bool
}

var partitions = map[string]partition{
	"an agent and the leader": {faults: func(p parts) []cluster.Fault { return cluster.Cut(p.agents[:1], p.leader) }},
	"an agent and all coordinators": {faults: func(p parts) []cluster.Fault {
		return cluster.Cut(p.agents[:1], p.coordinators)
	}},
	"the leader and the store":    {faults: func(p parts) []cluster.Fault { return cluster.Cut(p.leader, p.store) }},
	"a follower and the store":    {faults: func(p parts) []cluster.Fault { return cluster.Cut(p.followers[:1], p.store) }},
	"coordinators and each other": {faults: func(p parts) []cluster.Fault { return cluster.Cut(p.coordinators, p.coordinators) }},
	"all agents and the leader": {stalls: true, faults: func(p parts) []cluster.Fault {
		return cluster.Cut(p.agents, p.leader)
	}},
	"gossip alone": {faults: func(p parts) []cluster.Fault {
		faults := cluster.OneWay(p.all(), p.all())
		for i := range faults {
			faults[i].Ports = cluster.GossipPorts()
		}
		return faults
	}},
	"what an agent sends to the leader":    {faults: func(p parts) []cluster.Fault { return cluster.OneWay(p.agents[:1], p.leader) }},
	"what the leader sends to an agent":    {faults: func(p parts) []cluster.Fault { return cluster.OneWay(p.leader, p.agents[:1]) }},
	"what the leader sends to the store":   {faults: func(p parts) []cluster.Fault { return cluster.OneWay(p.leader, p.store) }},
	"everybody and the leader, on and off": {flaps: true, stalls: true, faults: func(p parts) []cluster.Fault { return cluster.Cut(p.all(), p.leader) }},
	// Leases of 2 s do not survive this: TCP waits longer for its repetitions.
	"a packet of five, everywhere": {stalls: true, faults: func(p parts) []cluster.Fault {
		faults := cluster.OneWay(p.all(), p.all())
		for i := range faults {
			faults[i].Loss = 20
		}
		return faults
	}},
}

func TestPartitionsLoseNothing(t *testing.T) {
	long.Only(t, "12 partitions hold for 3 s each; TestFaultsInTurnLoseNothing makes four")
	t.Parallel()
	cluster.NeedPrivate(t)
	c := start(t, cluster.Options{})
	began := time.Now()
	l := load(c, "p-")
	for round := range max(*rounds, 1) {
		for i, name := range slices.Sorted(maps.Keys(partitions)) {
			partitions[name].make(t, c, l, name)
			if *rounds > 0 {
				operations := finish(t, c, l, fmt.Sprintf("all-%d-%d", round, i))
				t.Logf("%s: after %s: %s; store: %+v", name, time.Since(began).Round(time.Second), outcomes(operations), c.Witness.Counts())
				l = load(c, fmt.Sprintf("p%d-%d-", round, i))
			}
		}
	}
	t.Logf("%s; store: %+v", outcomes(finish(t, c, l, "all")), c.Witness.Counts())
}

// make makes the partition, lets it last, and heals it.
func (p partition) make(t *testing.T, c *cluster.Cluster, l *cluster.Load, name string) {
	faults := p.faults(partsOf(c))
	before := c.Witness.Counts()
	for range map[bool]int{true: 3, false: 1}[p.flaps] {
		c.Fault(faults...)
		if p.flaps {
			hold(time.Second)
			c.Fault()
			hold(time.Second)
			continue
		}
		hold(lasting)
		if !p.stalls {
			l.AwaitProgress(1, "without "+name)
		}
	}
	c.Heal()
	l.AwaitProgress(1, "after the return of "+name)
	after := c.Witness.Counts()
	t.Logf("%s: %d granted, %d attempts aborted, %d elections", name,
		after.Committed-before.Committed, after.Aborted-before.Aborted, after.Elections-before.Elections)
}
