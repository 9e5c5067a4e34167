package narrate

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// node is a node as its keys have it. It never changes: the next one takes over the
// parts whose keys are the same.
type node struct {
	spec     *record.NodeSpec
	identity *record.NodeIdentity
	status   *record.NodeStatus
	observed *record.NodeObserved
	ban      *record.Ban
	revision resource.Revision // the newest of the keys

	// row and conditions are made of the keys at the end of the revision.
	row        history.Node
	conditions []api.Condition
}

// exists reports whether the store has the node.
func (n *node) exists() bool { return n != nil && n.spec != nil }

// takeNode takes one of a node's keys.
func (n *Narrator) takeNode(c *change, e record.Event) error {
	key, err := record.ParseNodeKey(e.KV.Key)
	if err != nil {
		return err
	}
	gone := e.Type == record.EventDelete
	switch key.Part {
	case record.NodeSpecPart:
		return changeNode(n, c, key.ID, e, gone, func(at *node) **record.NodeSpec { return &at.spec })
	case record.NodeIdentityPart:
		return changeNode(n, c, key.ID, e, gone, func(at *node) **record.NodeIdentity { return &at.identity })
	case record.NodeStatusPart:
		err := changeNode(n, c, key.ID, e, gone, func(at *node) **record.NodeStatus { return &at.status })
		if at := n.nodes[key.ID]; at.status != nil {
			c.note(parsed(at.status.HeardAt)) // while nothing else happens, time goes on by this
		}
		return err
	case record.NodeObservedPart:
		return changeNode(n, c, key.ID, e, gone, func(at *node) **record.NodeObserved { return &at.observed })
	case record.NodeLeasePart, record.NodeLostPart, record.NodeTxPart:
	}
	return nil
}

// takeBan takes the ban of a node.
func (n *Narrator) takeBan(c *change, e record.Event) error {
	id, err := record.ParseBanKey(e.KV.Key)
	if err != nil {
		return err
	}
	return changeNode(n, c, id, e, e.Type == record.EventDelete, func(at *node) **record.Ban { return &at.ban })
}

// changeNode replaces one part of a node.
func changeNode[R record.Type](n *Narrator, c *change, id resource.NodeID, e record.Event, gone bool, part func(*node) **R) error {
	before := n.nodes[id]
	if _, noted := c.nodes[id]; !noted {
		c.nodes[id] = before
	}
	next := &node{}
	if before != nil {
		*next = *before
	}
	next.revision = e.KV.ModRev
	if !c.whole && before != nil {
		next.revision = max(before.revision, c.revision)
	} else if before != nil {
		next.revision = max(before.revision, e.KV.ModRev)
	}
	n.nodes[id] = next
	if gone {
		*part(next) = nil
		return nil
	}
	rec, err := decode[R](e.KV)
	if err != nil {
		return err
	}
	*part(next) = rec
	return nil
}

// tellNode makes the rows of a node that has changed.
func (n *Narrator) tellNode(c *change, id resource.NodeID) {
	before, after := c.nodes[id], n.nodes[id]
	if !after.exists() {
		if before.exists() {
			row := before.row
			row.Phase, row.Deleted, row.Revision = "Deleted", first(c.at, before.newest()), c.revision
			n.out.nodes.put(id, row)
		}
		if after.identity == nil && after.status == nil && after.observed == nil && after.ban == nil {
			delete(n.nodes, id)
		}
		return
	}
	n.render(id, after)
	if before.exists() && sameNode(before.row, after.row) {
		return
	}
	n.out.nodes.put(id, after.row)
	n.tellConditions(c, id, before, after)
}

// sameNode reports whether two rows differ by nothing but their revision.
func sameNode(a, b history.Node) bool {
	a.Revision = b.Revision
	return reflect.DeepEqual(a, b)
}

// render makes the row of a node from its keys.
func (n *Narrator) render(id resource.NodeID, at *node) {
	s := shown.Node{
		ID: id, Spec: at.spec, Revision: at.revision, Observed: at.observed, Violation: at.spec.Violation, Unapproved: admission.UnapprovedOf(*at.spec),
		Labels: admission.Labels(admission.RegisteredAs(id, *at.spec), at.spec.Labels, at.spec.OperatorLabels),
	}
	s.Summary = &at.spec.Topology
	if at.status != nil {
		s.Told.Conditions = at.status.Conditions
	}
	if i := at.identity; i != nil {
		s.Incarnation, s.Registered = i.Incarnation, true
		if i.Fenced {
			s.Fence = &shown.Fence{Dead: i.ConfirmedDead, At: i.FencedAt, Reason: i.FencedFor}
		}
	}
	if at.ban != nil && at.ban.Banned {
		s.Ban = at.ban
	}
	o := s.Show()
	at.conditions = o.Status.Conditions
	at.row = history.Node{
		ID: id, Hostname: at.spec.Hostname, Cluster: n.cluster, Region: domain(s.Labels, "topology.kubernetes.io/region", "region"),
		Zone: domain(s.Labels, "topology.kubernetes.io/zone", "zone"), Rack: domain(s.Labels, "topology.kubernetes.io/rack", "rack"),
		GPUModel: strings.Join(at.spec.Topology.GPUModels, ","), Labels: s.Labels, Annotations: at.spec.Annotations,
		Taints: jsonOf(at.spec.Taints, len(at.spec.Taints) > 0), Conditions: told(at.conditions),
		Capacity: at.spec.Capacity, Allocatable: s.Allocatable(), Phase: string(o.Status.Phase), Cordoned: at.spec.Unschedulable,
		Registered: parsed(at.spec.Created), Revision: at.revision,
	}
}

// domain is the value of the first label that a node has.
func domain(labels map[string]string, keys ...string) string {
	for _, key := range keys {
		if v := labels[key]; v != "" {
			return v
		}
	}
	return ""
}

// told encodes conditions.
func told(conditions []api.Condition) json.RawMessage {
	return jsonOf(conditions, len(conditions) > 0)
}

// tellConditions makes the rows of the conditions that have changed. A condition that
// is not shown any more is False.
func (n *Narrator) tellConditions(c *change, id resource.NodeID, before, after *node) {
	old := map[string]string{}
	if before.exists() {
		for _, o := range before.conditions {
			old[o.Type] = o.Status
		}
	}
	for _, now := range after.conditions {
		was, known := old[now.Type]
		delete(old, now.Type)
		if known && was == now.Status {
			continue
		}
		n.out.condition(history.Condition{
			Node: id, Type: now.Type, Old: was, New: now.Status, Reason: now.Reason, Message: now.Message,
			At: first(parsed(now.LastTransitionTime), c.at, after.newest()), Revision: c.revision,
		})
	}
	for _, o := range before.list() {
		if was, ended := old[o.Type]; ended && was != "False" {
			n.out.condition(history.Condition{Node: id, Type: o.Type, Old: was, New: "False", At: first(c.at, after.newest()), Revision: c.revision})
		}
	}
}

func (n *node) list() []api.Condition {
	if !n.exists() {
		return nil
	}
	return n.conditions
}

// newest is the newest instant in the node's keys: the conditions that the leader
// derives have none of their own.
func (n *node) newest() time.Time {
	at := parsed(n.spec.Created)
	if len(n.spec.Registrations) > 0 {
		at = latest(at, parsed(slices.Max(n.spec.Registrations)))
	}
	if n.status != nil {
		at = latest(at, parsed(n.status.HeardAt))
	}
	if n.identity != nil {
		at = latest(at, parsed(n.identity.FencedAt))
	}
	if n.ban != nil {
		at = latest(at, parsed(n.ban.At))
	}
	if v := n.spec.Violation; v != nil {
		at = latest(at, parsed(v.At))
	}
	return at
}

// modelOf is the model of a device of a node, "" where it is not known.
func (n *Narrator) modelOf(id resource.NodeID, device int) string {
	at := n.nodes[id]
	if !at.exists() {
		return ""
	}
	t := &at.spec.Topology
	switch {
	case device >= 0 && device < len(t.GPUModel) && t.GPUModel[device] >= 0 && t.GPUModel[device] < len(t.GPUModels):
		return t.GPUModels[t.GPUModel[device]]
	case len(t.GPUModels) > 0:
		return t.GPUModels[0]
	}
	return ""
}
