package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// Machine is the hardware of hosts that differ by their devices alone.
type Machine struct {
	Topology       *numa.Topology `json:"topology"`
	ReservedCPUs   bitset.Set     `json:"reservedCPUs"`
	ReservedMemory resource.Bytes `json:"reservedMemory,omitempty"`
	Counts         []grant.Count  `json:"counts,omitempty"`
}

func (m *Machine) check() error {
	if m.Topology == nil {
		return errors.New("topology: missing")
	}
	if m.ReservedMemory < 0 || m.ReservedMemory > resource.MaxMemory {
		return fmt.Errorf("reservedMemory: %d is outside 0..%d", m.ReservedMemory, resource.MaxMemory)
	}
	return errors.Join(m.Topology.Validate(), grant.CheckCounts(m.Counts))
}

// Node is the part of a node that its agent and gossip have reported.
type Node struct {
	ID        resource.NodeID `json:"id"`
	Suspected bool            `json:"suspected,omitempty"` // gossip believes it dead
	// Agent is nil where no stream to the agent was open: nothing starts on the node then.
	Agent *Agent `json:"agent,omitempty"`
}

// Agent is the report of an agent.
type Agent struct {
	Incarnation    resource.Incarnation `json:"incarnation"`
	Revision       resource.Revision    `json:"revision,omitempty"` // of the registration; 0 for none
	Hostname       string               `json:"hostname,omitempty"`
	Machine        int                  `json:"machine"` // index of Document.Machines
	Inventory      *devices.Inventory   `json:"inventory"`
	Labels         map[string]string    `json:"labels,omitempty"`
	Health         []Health             `json:"health,omitempty"` // ascending by device; devices that are ok are left out
	DiskFull       bool                 `json:"diskFull,omitempty"`
	MemoryPressure bool                 `json:"memoryPressure,omitempty"`
	Quarantine     string               `json:"quarantine,omitempty"`
	// LastUntil is the instant until which placement takes the node last.
	LastUntil time.Time `json:"lastUntil,omitzero"`
	// Busy are the GPUs and MIG instances, by UUID, that something other than work of
	// Muster has.
	Busy []string `json:"busy,omitempty"`
}

// Health is the health of one device that is not ok.
type Health struct {
	Device int            `json:"device"` // index
	Health devices.Health `json:"health"`
	Reason string         `json:"reason,omitempty"`
}

func (n *Node) check(machines int) error {
	a := n.Agent
	switch {
	case n.ID == "":
		return errors.New("id: empty")
	case a == nil:
		return nil
	case a.Machine < 0 || a.Machine >= machines:
		return fmt.Errorf("machine: %d, and there are %d", a.Machine, machines)
	case a.Inventory == nil:
		return errors.New("inventory: missing")
	}
	for i, h := range a.Health {
		if h.Device < 0 || h.Device >= len(a.Inventory.Devices) || i > 0 && a.Health[i-1].Device >= h.Device {
			return fmt.Errorf("health[%d]: device %d: want 0 to %d, ascending", i, h.Device, len(a.Inventory.Devices)-1)
		}
	}
	return a.Inventory.Validate()
}

// addNodes takes nodes in, which ascend by ID. Hosts of one kind share a Machine.
func (d *Document) addNodes(nodes []lead.CapturedNode) {
	made := map[string]int{} // index of Machines, by the text of the machine
	for i := range nodes {
		n := &nodes[i]
		one := Node{ID: n.ID, Suspected: n.Suspected}
		if n.Connected {
			one.Agent = agentOf(n)
			m := Machine{Topology: n.Host.Topology, ReservedCPUs: n.Host.ReservedCPUs, ReservedMemory: n.Host.ReservedMemory, Counts: n.Host.Counts}
			text := m.text()
			at, known := made[text]
			if !known {
				at, made[text] = len(d.Machines), len(d.Machines)
				d.Machines = append(d.Machines, m)
			}
			one.Agent.Machine = at
		}
		d.Nodes = append(d.Nodes, one)
	}
}

func agentOf(n *lead.CapturedNode) *Agent {
	a := &Agent{
		Incarnation: n.Incarnation, Revision: n.Revision, Hostname: n.Host.Hostname, Inventory: n.Host.Inventory, Labels: n.Host.Labels,
		DiskFull: n.DiskFull, MemoryPressure: n.MemoryPressure, Quarantine: n.Quarantine, LastUntil: n.LastUntil.UTC(), Busy: n.Busy,
	}
	for device, h := range n.Health {
		a.Health = append(a.Health, Health{device, h.Health, h.Reason})
	}
	slices.SortFunc(a.Health, func(x, y Health) int { return x.Device - y.Device })
	return a
}

func (m *Machine) text() string {
	text, err := json.Marshal(m)
	if err != nil {
		panic("capture: a machine: " + err.Error()) // plain values
	}
	return string(text)
}

// Host is the host of an agent of the document.
func (d *Document) Host(a *Agent) grant.Host {
	m := &d.Machines[a.Machine]
	return grant.Host{
		Hostname: a.Hostname, Topology: m.Topology, Inventory: a.Inventory, ReservedCPUs: m.ReservedCPUs, ReservedMemory: m.ReservedMemory, Labels: a.Labels, Counts: m.Counts,
	}
}
