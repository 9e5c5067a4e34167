package cluster

import (
	"maps"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// This file changes the facts of a node that no checkpoint can undo. No method of
// it may be called while a checkpoint is open.

// Reset sets the hardware of a node, all of it free, and marks the devices whose
// bits are set in unhealthy as taking no new work.
func (s *State) Reset(n *Node, host *fit.Host, unhealthy uint64) {
	s.needsNoCheckpoint("reset", n)
	s.rehost(n, host)
	n.shared = false
	n.Free.Unhealthy = unhealthy
	n.Refresh()
	s.markStale(n)
	s.noteNews(n, true, true)
}

// SetUnhealthy sets which devices take no new work, by the bits of their indices.
// The node has a host.
func (s *State) SetUnhealthy(n *Node, unhealthy uint64) {
	s.needsNoCheckpoint("set the health of", n)
	n.unshare()
	before := n.Free.Unhealthy
	n.Free.Unhealthy = unhealthy
	n.Refresh()
	s.markStale(n)
	s.noteNews(n, before&^unhealthy != 0, unhealthy&^before != 0)
}

// SetClosedCounts sets which counted resources of the host take no new work, as
// fit.Host.ClosedBits has them. The node has a host.
func (s *State) SetClosedCounts(n *Node, closed uint32) {
	s.needsNoCheckpoint("close resources of", n)
	before := n.Free.ClosedCounts
	if before == closed {
		return
	}
	n.unshare()
	n.Free.ClosedCounts = closed
	s.offered++
	n.Refresh()
	s.markStale(n)
	s.noteNews(n, before&^closed != 0, closed&^before != 0)
}

// SetWithheld sets the part of the free CPUs and memory that takes no new work. The node
// has a host.
func (s *State) SetWithheld(n *Node, withheld fit.Withheld) {
	s.needsNoCheckpoint("withhold a part of", n)
	before := n.Free.Withheld
	if before == withheld {
		return
	}
	n.unshare()
	n.Free.Withheld = withheld
	n.Refresh()
	s.markStale(n)
	s.noteNews(n, withheld.CPU < before.CPU || withheld.Memory < before.Memory, withheld.CPU > before.CPU || withheld.Memory > before.Memory)
}

// SetReady sets whether the node is registered and a stream to its agent is open.
func (s *State) SetReady(n *Node, ready bool) {
	s.needsNoCheckpoint("set the readiness of", n)
	s.noteNews(n, ready && !n.Ready, !ready && n.Ready)
	n.Ready = ready
	s.markStale(n)
}

// SetUnschedulable sets whether the node is kept from new work.
func (s *State) SetUnschedulable(n *Node, unschedulable bool) {
	s.needsNoCheckpoint("cordon", n)
	s.noteNews(n, n.Unschedulable && !unschedulable, !n.Unschedulable && unschedulable)
	n.Unschedulable = unschedulable
	s.markStale(n)
}

// SetClosed sets the words for why the node is not Ready, or Unschedulable.
func (s *State) SetClosed(n *Node, why string) { n.Closed = why }

// SetRegistered sets the capacity of the registration, which nobody changes any
// more.
func (s *State) SetRegistered(n *Node, capacity resource.Vector) {
	if !maps.Equal(n.Registered, capacity) {
		s.offered++
	}
	n.Registered = capacity
}

// SetSuspect sets whether gossip believes the node dead.
func (s *State) SetSuspect(n *Node, suspect bool) {
	n.Suspect = suspect
	s.markStale(n)
}

// SetTripped sets whether the node's agent does not answer reserves as it should.
func (s *State) SetTripped(n *Node, tripped bool) {
	n.Tripped = tripped
	s.markStale(n)
}

// Relabel sets the labels and taints of a node.
func (s *State) Relabel(n *Node, labels map[string]string, taints []constraint.Taint) {
	s.needsNoCheckpoint("relabel", n)
	before, now := n.Labels, s.labels.Intern(labels, taints)
	if s.labels.Release(before); now == before {
		return
	}
	s.relabel(n, now)
	s.regroup()
	s.offered++
	s.markStale(n)
	s.noteNews(n, true, true)
}
