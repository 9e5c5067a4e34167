// Package objectstest makes up the store's keys of a small cluster that changes:
// for tests of the projection and of what feeds it.
package objectstest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// World is a cluster as its keys have it. Change makes one transaction after
// another; the caller writes them.
type World struct {
	Namespaces []string
	random     *rand.Rand
	counter    uint64
	nodes      map[resource.NodeID]*node
	units      map[string]*unit // by namespace/name/n
	jobs       map[string]*record.Job
}

type node struct {
	spec          record.NodeSpec
	leased, lost  bool
	banned, known bool
}

type unit struct {
	record.Unit
	tx *record.Tx
}

// New returns an empty cluster; the seed decides everything that becomes of it.
func New(seed uint64, namespaces ...string) *World {
	return &World{
		Namespaces: namespaces, random: rand.New(rand.NewPCG(seed, 0)),
		nodes: map[resource.NodeID]*node{}, units: map[string]*unit{}, jobs: map[string]*record.Job{},
	}
}

// Change returns the operations of the next transaction, at least one.
func (w *World) Change() []record.Op {
	for {
		ops := w.change()
		if len(ops) > 0 {
			slices.SortFunc(ops, func(a, b record.Op) int { return compareKeys(a.Key, b.Key) })
			return ops
		}
	}
}

func compareKeys(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func (w *World) change() []record.Op {
	switch w.random.IntN(15) {
	case 0:
		return w.changeNode()
	case 1:
		return w.changeQuota()
	case 2:
		return w.createJob()
	case 3, 4:
		return w.CreateAllocation()
	case 5, 6, 7:
		return w.commit()
	case 8:
		return w.label()
	case 9, 10:
		return w.release()
	case 11:
		return w.ready()
	case 12:
		return w.move()
	case 13:
		return w.changeSpace()
	default:
		return w.end()
	}
}

// pick is a random one of a map's values, in the order of the keys.
func pick[K interface{ ~string }, V any](w *World, from map[K]V, want func(V) bool) (V, bool) {
	var found []V
	for _, k := range slices.Sorted(maps.Keys(from)) {
		if want(from[k]) {
			found = append(found, from[k])
		}
	}
	if len(found) == 0 {
		var none V
		return none, false
	}
	return found[w.random.IntN(len(found))], true
}

func (w *World) namespace() string { return w.Namespaces[w.random.IntN(len(w.Namespaces))] }

// changeNode registers a node, or changes something about it.
func (w *World) changeNode() []record.Op {
	id := resource.NodeID(fmt.Sprint("n", w.random.IntN(4)))
	n := w.nodes[id]
	if n == nil {
		n = &node{known: true, leased: true, spec: record.NodeSpec{
			Hostname: string(id), Created: "2000-01-01T00:00:00Z",
			Capacity: resource.Vector{resource.GPU: 8000}, Allocatable: resource.Vector{resource.GPU: 8000},
			Topology: record.TopologySummary{GPUs: 8, GPUModels: []string{"H100"}, GPUModel: []int{0, 0, 0, 0, 0, 0, 0, 0}, NUMACPUs: map[int]string{0: "0-7", 1: "8-15"}},
		}}
		w.nodes[id] = n
		identity := record.NodeIdentity{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}}
		return []record.Op{
			record.Put(record.NodeIdentityKey(id), record.MustEncode(identity)), record.Put(record.NodeSpecKey(id), record.MustEncode(n.spec)),
			record.Put(record.NodeLeaseKey(id), record.MustEncode(record.NodeLease{Coordinator: "c"})),
		}
	}
	switch w.random.IntN(4) {
	case 0:
		n.spec.Unschedulable = !n.spec.Unschedulable
		return []record.Op{record.Put(record.NodeSpecKey(id), record.MustEncode(n.spec))}
	case 1:
		if n.leased = !n.leased; !n.leased {
			return []record.Op{record.Delete(record.NodeLeaseKey(id))}
		}
		return []record.Op{record.Put(record.NodeLeaseKey(id), record.MustEncode(record.NodeLease{Coordinator: "c"}))}
	case 2:
		n.spec.Labels = map[string]string{"rack": fmt.Sprint(w.random.IntN(3))}
		return []record.Op{record.Put(record.NodeSpecKey(id), record.MustEncode(n.spec))}
	default:
		n.lost = !n.lost
		status := record.NodeStatus{}
		if n.lost {
			status.Conditions = []record.Condition{{Type: "DeviceLost", Status: "True", Reason: "XID79", Message: device(id, 0) + "; " + device(id, 1)}}
		}
		loss := record.NodeLost{Returned: []string{device(id, 0), device(id, 1)}}
		if n.lost {
			loss = record.NodeLost{Lost: loss.Returned}
		}
		return []record.Op{record.Put(record.NodeStatusKey(id), record.MustEncode(status)), record.Put(record.NodeLostKey(id), record.MustEncode(loss))}
	}
}

func device(id resource.NodeID, at int) string { return fmt.Sprintf("GPU-%s-%d", id, at) }

// changeQuota writes or removes a resource quota, a forest or a binding.
func (w *World) changeQuota() []record.Op {
	namespace, name := w.namespace(), fmt.Sprint("q", w.random.IntN(2))
	var key record.QuotaKey
	var document string
	switch w.random.IntN(5) {
	case 3:
		key, name = record.QuotaKey{Kind: record.QuotaTrees, Name: "Org"}, "Org"
		document = w.tree()
	case 4:
		return w.changeMode()
	case 0:
		key = record.QuotaKey{Kind: record.QuotaResources, Namespace: namespace, Name: name}
		document = fmt.Sprintf(`{"metadata":{"name":%q,"namespace":%q},"spec":{"hard":{"nvidia.com/gpu":"%d"}}}`, name, namespace, 1+w.random.IntN(20))
	case 1:
		key = record.QuotaKey{Kind: record.QuotaForests, Name: name}
		document = fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"trees":["t%d"]}}`, name, w.random.IntN(3))
	default:
		key, name = record.QuotaKey{Kind: record.QuotaNamespaces, Name: namespace}, namespace
		document = fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"forest":"f%d","groups":{"t0":"g"}}}`, name, w.random.IntN(3))
	}
	if w.random.IntN(3) == 0 {
		return []record.Op{record.Delete(key.Key())}
	}
	quota := record.Quota{UID: "q", Name: name, Document: []byte(document)}
	if key.Kind == record.QuotaResources {
		quota.Namespace = namespace
	}
	return []record.Op{record.Put(key.Key(), record.MustEncode(quota))}
}

// tree is the specification of the tree Org. Its groups are some of the namespaces, with
// quotas that the work of a group may be above.
func (w *World) tree() string {
	nodes := fmt.Sprintf(`"all":{"quota":{"nvidia.com/gpu":%d}}`, 4+w.random.IntN(12))
	for _, namespace := range w.Namespaces {
		if w.random.IntN(4) > 0 {
			nodes += fmt.Sprintf(`,%q:{"parent":"all","quota":{"nvidia.com/gpu":%d}}`, namespace, 1+w.random.IntN(6))
		}
	}
	return fmt.Sprintf(`{"metadata":{"name":"Org"},"spec":{"resourceNames":["nvidia.com/gpu"],"nodes":{%s}}}`, nodes)
}

// changeMode changes the mode of the quota trees.
func (w *World) changeMode() []record.Op {
	mode := record.QuotaMode{UID: "mode", Since: "2000-01-01T00:00:00Z", Maintenance: w.random.IntN(2) == 0}
	return []record.Op{record.Put(record.QuotaModeKey, record.MustEncode(mode))}
}

// changeSpace writes or removes a tenant, a namespace, the description of a resource, a
// queue, an access token or a role binding.
func (w *World) changeSpace() []record.Op {
	if w.random.IntN(2) == 0 {
		return w.changeCredential()
	}
	name := w.namespace()
	if w.random.IntN(3) == 0 {
		name = []string{"cpu", "example.com/" + name}[w.random.IntN(2)]
		return w.writeOrRemove(record.NamedKey(record.ResourcesPrefix, name), name, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"unit":"u%d"}}`, name, w.random.IntN(3)))
	}
	if w.random.IntN(3) == 0 {
		name = []string{"default", "q", name}[w.random.IntN(3)]
		if w.random.IntN(3) == 0 {
			class := []string{"low", "urgent"}[w.random.IntN(2)]
			return w.writeOrRemove(record.NamedKey(record.PriorityClassesPrefix, class), class, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"value":0,"globalDefault":%t}}`, class, w.random.IntN(2) == 0))
		}
		return w.writeOrRemove(record.NamedKey(record.QueuesPrefix, name), name, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"maxRunningMembers":%d}}`, name, w.random.IntN(3)))
	}
	key, document := record.NamedKey(record.TenantsPrefix, name), fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"owner":"o%d"}}`, name, w.random.IntN(3))
	if w.random.IntN(2) == 0 {
		key, document = record.NamedKey(record.NamespacesPrefix, name), fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"priorityCeiling":%d}}`, name, w.random.IntN(3))
	}
	return w.writeOrRemove(key, name, document)
}

func (w *World) writeOrRemove(key, name, document string) []record.Op {
	if w.random.IntN(3) == 0 {
		return []record.Op{record.Delete(key)}
	}
	return []record.Op{record.Put(key, record.MustEncode(record.Object{UID: "s", Name: name, Document: []byte(document)}))}
}

// changeCredential writes or removes an access token or a role binding.
func (w *World) changeCredential() []record.Op {
	id, tenant := fmt.Sprint("at-", w.random.IntN(2)), w.namespace()
	key, binding := record.AccessTokenKey(id), w.random.IntN(2) == 0
	if binding {
		key = record.RoleBindingKey(id)
	}
	switch {
	case w.random.IntN(3) == 0:
		return []record.Op{record.Delete(key)}
	case binding:
		document := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"role":"viewer","tenant":%q,"subjects":[{"kind":"User","name":"u%d"}]}}`, id, tenant, w.random.IntN(3))
		return []record.Op{record.Put(key, record.MustEncode(record.Object{UID: "r", Name: id, Document: []byte(document)}))}
	}
	const created = "2000-01-01T00:00:00Z"
	token := record.AccessToken{
		ID: id, User: fmt.Sprint("u", w.random.IntN(3)), Role: "viewer", Tenant: tenant, Creator: "admin", Created: created,
		Secrets: []record.TokenSecret{{SHA256: strings.Repeat("0", 64), Created: created}},
	}
	return []record.Op{record.Put(key, record.MustEncode(token))}
}

// CreateAllocation queues an allocation.
func (w *World) CreateAllocation() []record.Op {
	namespace, name := w.namespace(), fmt.Sprint("a", w.random.IntN(30))
	document := w.document(name)
	return w.queue(&unit{Unit: record.Unit{Kind: record.AllocUnit, Namespace: namespace, Name: name, Members: 1, Document: []byte(document)}})
}

func (w *World) document(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"team":"t%d"}},"spec":{"resources":{"requests":{"nvidia.com/gpu":"1"}}}}`, name, w.random.IntN(3))
}

// queue queues a unit, unless there is one of its name.
func (w *World) queue(u *unit) []record.Op {
	id := fmt.Sprintf("%s/%s/%s/%d", u.Kind, u.Namespace, u.Name, u.N)
	if w.units[id] != nil {
		return nil
	}
	w.counter++
	u.UID, u.Tenant, u.Queue, u.Phase = resource.UnitUID(fmt.Sprint("u", w.counter)), resource.TenantID(u.Namespace), []string{"default", "default", "q"}[w.random.IntN(3)], string(api.Pending)
	u.Sequence, u.Priority = record.Sequence{Epoch: 1, Counter: w.counter}, int32(w.random.IntN(3))
	u.Created = "2000-01-01T00:00:00Z"
	w.units[id] = u
	return []record.Op{
		record.Put(u.Path().Key(), record.MustEncode(u.Unit)), record.Put(u.Order().Key(), record.MustEncode(record.Order{UnitUID: u.UID})),
	}
}

// createJob queues a job of two units.
func (w *World) createJob() []record.Op {
	namespace, name := w.namespace(), fmt.Sprint("j", w.random.IntN(3))
	if w.jobs[namespace+"/"+name] != nil {
		return nil
	}
	document := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"team":"t%d"}},"spec":{"parallelism":4,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":"1"}}}}}}`, name, w.random.IntN(3))
	job := &record.Job{UID: "j-" + name, Namespace: namespace, Name: name, Document: []byte(document), Created: "2000-01-01T00:00:00Z"}
	var ops []record.Op
	for n := range 2 {
		u := &unit{Unit: record.Unit{Kind: record.JobUnit, Namespace: namespace, Name: name, N: n, Members: 2, FirstMember: 2 * n}}
		ops = append(ops, w.queue(u)...)
		job.Units = append(job.Units, u.Path())
	}
	w.jobs[namespace+"/"+name] = job
	return append(ops, record.Put(record.JobKey(namespace, name), record.MustEncode(*job)))
}

// commit places a unit that waits.
func (w *World) commit() []record.Op {
	u, found := pick(w, w.units, func(u *unit) bool { return u.tx == nil })
	if !found || len(w.nodes) == 0 {
		return nil
	}
	w.counter++
	u.TxID = resource.TxID(fmt.Sprintf("%s.1.%d.%032x", u.UID, w.counter, w.counter))
	u.Phase, u.Started = string(api.Running), "2000-01-01T00:00:00Z"
	u.tx = &record.Tx{State: grant.RecordCommitted, Epoch: 1, Unit: u.Path(), UnitUID: u.UID, Tenant: u.Tenant}
	request := resource.Vector{resource.GPU: int64(1000 * u.Members)}
	u.tx.Charges = []record.Charge{{Tree: "namespaces", Group: u.Namespace, Request: request}}
	if w.random.IntN(4) > 0 {
		charge := record.Charge{Tree: "Org", Group: u.Namespace, Request: request}
		if w.random.IntN(3) == 0 {
			charge.Node = "all"
		}
		u.tx.Charges = append(u.tx.Charges, charge)
	}
	ops := []record.Op{record.Delete(u.Order().Key()), record.Put(u.Path().Key(), record.MustEncode(u.Unit))}
	nodes := slices.Sorted(maps.Keys(w.nodes))
	for i := range u.Members {
		on := nodes[w.random.IntN(len(nodes))]
		at := w.random.IntN(8)
		u.tx.Members = append(u.tx.Members, record.Placement{Member: i, Node: on, Assignment: resource.Assignment{
			GPUs: []resource.GPUGrant{{Index: at, UUID: device(on, at), Milli: 1000}},
			CPUs: []resource.CPUGrant{{ID: w.random.IntN(16), Milli: 1000}},
		}})
		ops = append(ops, record.Put(record.NodeTxKey(on, u.TxID), record.MustEncode(record.NodeTx{Members: []int{i}})))
	}
	slices.SortFunc(ops, func(a, b record.Op) int { return compareKeys(a.Key, b.Key) })
	ops = slices.CompactFunc(ops, func(a, b record.Op) bool { return a.Key == b.Key }) // two members on one node
	return append(ops, record.Put(record.TxKey(u.TxID), record.MustEncode(*u.tx)))
}

// label changes the labels of an allocation or a job.
func (w *World) label() []record.Op {
	if w.random.IntN(4) == 0 {
		j, found := pick(w, w.jobs, func(*record.Job) bool { return true })
		if !found {
			return nil
		}
		j.Message = fmt.Sprint(w.random.IntN(100)) // which nobody is shown
		return []record.Op{record.Put(record.JobKey(j.Namespace, j.Name), record.MustEncode(*j))}
	}
	u, found := pick(w, w.units, func(u *unit) bool { return u.Kind == record.AllocUnit })
	if !found {
		return nil
	}
	u.Document = []byte(w.document(u.Name))
	return []record.Op{record.Put(u.Path().Key(), record.MustEncode(u.Unit))}
}

// ready notes that the agents hold all members of a unit, whose GPUs may do nothing.
func (w *World) ready() []record.Op {
	u, found := pick(w, w.units, func(u *unit) bool { return u.tx != nil && u.tx.State == grant.RecordCommitted })
	if !found {
		return nil
	}
	r := record.Ready{AtMillis: 946_684_800_000}
	if w.random.IntN(3) == 0 {
		r.IdleMillis, r.IdleBelow = r.AtMillis+int64(w.random.IntN(60_000)), 5
	}
	return []record.Op{record.Put(record.ReadyKey(u.TxID), record.MustEncode(r))}
}

// move moves a unit on the quota tree, or takes back that it has moved.
func (w *World) move() []record.Op {
	u, found := pick(w, w.units, func(u *unit) bool { return u.tx != nil && len(u.tx.Charges) > 1 })
	if !found {
		return nil
	}
	node := []string{"all", u.Namespace, ""}[w.random.IntN(3)]
	if node == "" {
		return []record.Op{record.Delete(record.SeatsKey(u.TxID))}
	}
	return []record.Op{record.Put(record.SeatsKey(u.TxID), record.MustEncode(record.Seats{Nodes: map[string]string{"Org": node}}))}
}

// release begins the end of a unit that runs.
func (w *World) release() []record.Op {
	u, found := pick(w, w.units, func(u *unit) bool { return u.tx != nil && u.tx.State == grant.RecordCommitted })
	if !found {
		return nil
	}
	u.tx.State, u.Phase = grant.RecordReleasing, string(api.Terminating)
	return []record.Op{record.Put(u.Path().Key(), record.MustEncode(u.Unit)), record.Put(record.TxKey(u.TxID), record.MustEncode(*u.tx))}
}

// end removes a unit that has ended; the last one of a job removes the job.
func (w *World) end() []record.Op {
	u, found := pick(w, w.units, func(u *unit) bool { return u.tx != nil && u.tx.State == grant.RecordReleasing })
	if !found {
		return nil
	}
	u.tx.State = grant.RecordReleased
	ops := []record.Op{record.Delete(u.Path().Key()), record.Put(record.TxKey(u.TxID), record.MustEncode(*u.tx))}
	seen := map[resource.NodeID]bool{}
	for _, m := range u.tx.Members {
		if !seen[m.Node] {
			ops = append(ops, record.Delete(record.NodeTxKey(m.Node, u.TxID)))
		}
		seen[m.Node] = true
	}
	delete(w.units, fmt.Sprintf("%s/%s/%s/%d", u.Kind, u.Namespace, u.Name, u.N))
	if u.Kind == record.JobUnit {
		other := fmt.Sprintf("%s/%s/%s/%d", u.Kind, u.Namespace, u.Name, 1-u.N)
		if w.units[other] == nil {
			delete(w.jobs, u.Namespace+"/"+u.Name)
			ops = append(ops, record.Delete(record.JobKey(u.Namespace, u.Name)))
		}
	}
	return ops
}
