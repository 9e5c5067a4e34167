package lead

import (
	"maps"
	"reflect"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// CreateNode writes the operators' settings of a node and the capacity that its host is
// expected to have, before its agent registers or after. Each node is created once. The
// result is the node.
type CreateNode struct{ Node api.Node }

func (r CreateNode) serve(l *Leader, c *desk.Call) { l.createNode(c, r.Node, changeAttempts) }

// createNode reads the specification, if there is one, and writes it with the creation.
func (l *Leader) createNode(c *desk.Call, of api.Node, attempts int) {
	id := resource.NodeID(of.Metadata.Name)
	key := record.NodeSpecKey(id)
	l.post.Read(key, func(kv record.KV, found bool, _ resource.Revision) {
		spec := record.NodeSpec{Created: l.post.Stamp()}
		if found {
			var err error
			if spec, err = record.Decode[record.NodeSpec](key, kv.Value); err != nil {
				c.Answer(nil, api.Errorf(500, "node %s: %v", id, err))
				return
			}
		}
		spec, status := created(spec, of, l.post.Millis())
		if status != nil {
			c.Answer(nil, status)
			return
		}
		l.writeCreation(c, of, spec, kv.ModRev, attempts)
	})
}

func (l *Leader) writeCreation(c *desk.Call, of api.Node, spec record.NodeSpec, before resource.Revision, attempts int) {
	id := resource.NodeID(of.Metadata.Name)
	key := record.NodeSpecKey(id)
	value, err := record.Encode(spec)
	if err != nil {
		c.Answer(nil, api.Errorf(422, "node %s: %v", id, err))
		return
	}
	l.post.Settle(post.Decision{
		Compares: []record.Compare{record.ModRevIs(key, before)},
		Ops:      []record.Op{record.Put(key, value)},
		Done: func(o txn.Outcome, rev resource.Revision, err error) {
			switch {
			case o == txn.Landed:
				l.post.Info("node_created", "node", id, "revision", int64(rev))
				l.takeSpec(l.node(id), spec, rev)
				c.Answer(NodeChanged{id}, nil)
			case attempts > 1 && err == nil:
				l.createNode(c, of, attempts-1)
			default:
				c.Answer(nil, refusal.Overtaken("node "+string(id), "creation", changeAttempts, err, "; ask again"))
			}
		},
	}, key, post.Wrote(key, func(written record.NodeSpec) bool {
		return sameForOperators(written, spec) && reflect.DeepEqual(written.Expected, spec.Expected)
	}))
}

// created is a specification with a creation, which is put over the settings that
// operators have made before.
func created(spec record.NodeSpec, of api.Node, now int64) (record.NodeSpec, *api.Status) {
	if spec.Expected != nil {
		return spec, api.Errorf(409, "node %s exists: it was created at %s. Change its labels, taints and annotations with a patch, or delete it first", of.Metadata.Name, spec.Created).Because(api.AlreadyExists)
	}
	spec.Expected = &record.Expected{Capacity: maps.Clone(of.Spec.Capacity), Allocatable: maps.Clone(of.Spec.Allocatable)}
	p := api.NodePatch{Labels: asPatch(of.Metadata.Labels), Annotations: asPatch(of.Metadata.Annotations), MergeTaints: of.Spec.Taints}
	if of.Spec.Unschedulable {
		p.Unschedulable = &of.Spec.Unschedulable
	}
	if k := of.Spec.Kubelet; k != nil {
		p.Kubelet = api.KubeletPatch{Add: &k.Add, Remove: &k.Remove}
	}
	return patched(spec, p, now)
}

// asPatch sets each key.
func asPatch(m map[string]string) api.MapPatch {
	p := api.MapPatch{Set: map[string]*string{}}
	for k, v := range m {
		p.Set[k] = &v
	}
	return p
}

// PatchNodeStatus lowers the amounts of a node that are handed out, or ends that. Its
// result is the node.
type PatchNodeStatus struct {
	Node  resource.NodeID
	Patch api.NodeStatusPatch
}

func (r PatchNodeStatus) serve(l *Leader, c *desk.Call) {
	if status := (api.Preconditions{UID: r.Patch.UID}).Check("node "+string(r.Node), api.ObjectMeta{UID: shown.NodeUID(r.Node)}); status != nil && l.nodes[r.Node] != nil {
		c.Answer(nil, status)
		return
	}
	l.changeNode(c, r.Node, change{version: r.Patch.ResourceVersion, of: func(spec record.NodeSpec) (record.NodeSpec, *api.Status) {
		return lowered(r.Node, spec, r.Patch)
	}})
}

// lowered is a specification with the wanted amounts.
func lowered(id resource.NodeID, spec record.NodeSpec, p api.NodeStatusPatch) (record.NodeSpec, *api.Status) {
	if !spec.HasRegistered() {
		return spec, api.Errorf(409, "node %s has not registered yet: what its host has is not known", id).Because(api.FailedPrecondition)
	}
	now := maps.Clone(spec.Lowered)
	for _, name := range p.Names() {
		wanted := p.Wanted[name]
		if wanted == nil {
			delete(now, name)
			continue
		}
		most := spec.Allocatable[name]
		if p.OfCapacity(name) { // the part that the system keeps stays
			most = spec.Capacity[name]
		}
		switch {
		case *wanted > most:
			return spec, p.Refuse(name, "%s is more than the %s that the agent of node %s has found", resource.FormatAmount(name, *wanted), resource.FormatAmount(name, most), id)
		case *wanted >= spec.Allocatable[name]:
			delete(now, name)
		case name != resource.GPU && name != resource.CPU && name != resource.Memory:
			return spec, p.Refuse(name, "%s is less than the %s that the agent of node %s has found, and only cpu, memory and whole GPUs (nvidia.com/gpu) can be withheld", resource.FormatAmount(name, *wanted), resource.FormatAmount(name, spec.Allocatable[name]), id)
		default:
			if now == nil {
				now = resource.Vector{}
			}
			now[name] = *wanted
		}
	}
	if len(now) == 0 {
		now = nil
	}
	spec.Lowered = now
	return spec, nil
}
