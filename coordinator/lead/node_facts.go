package lead

import (
	"cmp"
	"maps"
	"time"

	"github.com/musterd/muster/coordinator/lead/breaker"

	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// This file takes over what agents, the store and operators say of a node.

// connect notes that a stream to the agent has begun.
func (n *node) connect() {
	n.stream++
	n.connected = true
}

// disconnect notes that the stream to the agent has ended.
func (n *node) disconnect() { n.connected = false }

// setRegistration takes over as what the agent is registered, rev 0 for not yet.
func (n *node) setRegistration(i resource.Incarnation, rev resource.Revision) {
	n.incarnation, n.revision = i, rev
}

// clearRegistration notes that the registration counts for nothing.
func (n *node) clearRegistration() { n.revision = 0 }

// setHealth takes over the health of the devices, of the disk and of the memory.
func (n *node) setHealth(devices map[int]grant.DeviceHealth, diskFull, memoryPressure bool) {
	if !maps.Equal(n.health, devices) {
		n.observed.noteHealth()
	}
	n.health, n.diskFull, n.memoryPressure = devices, diskFull, memoryPressure
}

// setFence takes over the fence of the node's incarnation, nil for none.
func (n *node) setFence(f *fence) { n.fence = f }

// setBan takes over the ban of the node, nil for none.
func (n *node) setBan(b *record.Ban) { n.ban = b }

// setFollowed takes over what the coordinator's cache of the store has.
func (n *node) setFollowed(f NodeFacts) {
	n.observed.follow(f.Observed)
	n.lost.Follow(f.Lost)
	n.leased, n.lease, n.identity, n.ban, n.outdated = f.Leased, f.Lease, f.Identity, f.Ban, shown.Outdated(f.Outdated)
	n.judgeQuarantine()
}

// setUnheard notes whether nobody hears the agent.
func (n *node) setUnheard() { n.unheard = !n.connected && !n.leased }

// restoreSpec takes over the specification that the store has.
func (n *node) restoreSpec(spec record.NodeSpec, rev resource.Revision) {
	n.spec, n.specRev = spec, rev
	n.admit()
}

// beginLearning notes that the specification is to be read, and reports whether
// it is not being read yet.
func (n *node) beginLearning() bool {
	if n.learnAgain = n.learning; n.learning {
		return false
	}
	n.learning = true
	return true
}

// finishLearning notes that the specification was read, and reports whether it is
// to be read again.
func (n *node) finishLearning() (again bool) {
	again = n.learnAgain
	n.learning, n.learnAgain = false, false
	return again
}

// judgeQuarantine decides why the node gets no command, "" where the node gets commands.
func (n *node) judgeQuarantine() { n.quarantine = cmp.Or(n.isolated, n.outdated, n.held) }

// setGrants keeps everything that an agent holds for leaders.
func (n *node) setGrants(o grant.Occupancy) {
	n.grants = make(map[resource.TxID]grant.Grant, len(o.Grants))
	var local, pool []grant.Grant
	for _, g := range o.Grants {
		switch {
		case g.Origin == "":
			n.grants[g.Tx] = g
		case g.State != grant.Tombstone:
			local = append(local, g)
			if g.Origin == grant.OriginKubelet {
				pool = append(pool, pooledDevices(g))
			}
		}
	}
	n.observed.setLocal(sumOf(local), sumOf(pool))
	n.followLimit()
	n.known = n.isolated != "" || n.revision != 0 // an agent that registers says nothing
	n.told++
	n.rejoins = n.rejoins && n.quarantine != ""
}

// pooledDevices is a grant with its devices alone: a kubelet's pool has nothing else.
func pooledDevices(g grant.Grant) grant.Grant {
	members := g.Members
	g.Members = nil
	for _, m := range members {
		g.Members = append(g.Members, grant.Member{Assignment: resource.Assignment{GPUs: m.Assignment.GPUs, MIG: m.Assignment.MIG}})
	}
	return g
}

// setKubeletPool takes over the operators' part of the kubelet's pool that the agent
// follows.
func (n *node) setKubeletPool(p grant.KubeletPool) { n.kubeletPool = p }

// setAccused says why the node is isolated, until the store has that.
func (n *node) setAccused(v *record.Violation) { n.accused = v }

// beginAccusing notes that the isolation is being written.
func (n *node) beginAccusing() { n.accusing = true }

// finishAccusing notes that the isolation is not being written any more.
func (n *node) finishAccusing() { n.accusing = false }

// clearFaults forgets why the node was isolated and how often it failed.
func (n *node) clearFaults() { n.accused, n.breaker = nil, breaker.Breaker{} }

// setWakes notes whether the node still is to wake all that waits.
func (n *node) setWakes(later bool) { n.wakes = later }

// setUnanswered notes that the agent is to be asked for everything.
func (n *node) setUnanswered() { n.unanswered = true }

// clearUnanswered notes that the agent was asked for everything.
func (n *node) clearUnanswered() { n.unanswered = false }

// setConflicts takes over the resources that the node declares otherwise than others.
func (n *node) setConflicts(list []registry.Conflict) { n.conflicts = list }

// setSaid keeps the agent's own conditions.
func (n *node) setSaid(s said) { n.said = s }

// addChange has a change of an operator's wait for those before it.
func (n *node) addChange(f func()) { n.changes = append(n.changes, f) }

// finishChange ends the first change.
func (n *node) finishChange() { n.changes = n.changes[1:] }

// setSuspect takes over what gossip believes of the node.
func (n *node) setSuspect(suspect bool) { n.state.SetSuspect(&n.view, suspect) }

// setLoud makes the node the last choice until then.
func (n *node) setLoud(until time.Time) { n.loud = until }

// setTripped takes over for placement whether the node is the last choice.
func (n *node) setTripped(now time.Time) {
	n.state.SetTripped(&n.view, n.breaker.TrippedAt(now) || now.Before(n.loud))
}

// admit derives labels, taints and differences from the specification.
func (n *node) admit() {
	n.state.Relabel(&n.view, admission.Labels(admission.RegisteredAs(n.view.ID, n.spec), n.spec.Labels, n.spec.OperatorLabels), form.Taints(n.spec))
	n.state.SetRegistered(&n.view, n.spec.Allocatable)
	n.unapproved, n.bounds, n.foreign = admission.UnapprovedOf(n.spec), admission.BoundsOf(n.spec), admission.IsForeign(n.spec)
	n.compareOffer()
	n.followLimit()
}

// compareOffer compares the host in the stream's hello with the registered one.
// A smaller host is no difference: nothing is placed beyond it.
func (n *node) compareOffer() {
	n.unregistered = admission.Growth{}
	if n.view.Host == nil || n.specRev == 0 {
		return
	}
	allocatable := n.view.Host.Allocatable()
	offered := admission.Capacity{Amounts: admission.CapacityOf(n.host, allocatable), Models: admission.ModelsOf(n.host.Inventory)}
	n.unregistered = admission.Unregistered(offered, admission.RegisteredCapacity(n.spec))
	if n.unregistered.IsZero() {
		n.unregistered = admission.Unregistered(admission.Capacity{Amounts: allocatable}, admission.Capacity{Amounts: n.spec.Allocatable})
	}
}

// closeCounts keeps the resources of which the node has conflicts from new work.
func (n *node) closeCounts(a registry.Agreement) {
	n.setConflicts(a.Conflicts[string(n.view.ID)])
	n.applyConflicts()
}

// applyConflicts marks the resources that the node has conflicts of.
func (n *node) applyConflicts() {
	if n.view.Free == nil {
		return
	}
	var names []resource.Name
	for _, c := range n.conflicts {
		names = append(names, c.Name)
	}
	n.state.SetClosedCounts(&n.view, n.view.Host.ClosedBits(names))
}
