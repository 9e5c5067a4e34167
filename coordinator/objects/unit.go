package objects

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/count"
	"github.com/musterd/muster/coordinator/lead/form"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// cachedUnit is a unit as its keys have it. It never changes once the unit is made,
// except for the parts that it holds: the next cachedUnit of the path takes over the parts
// whose keys are the same.
type cachedUnit struct {
	shown.Unit // Record and Request point into this
	path       string
	stored     resource.Revision // of the unit's own key
	record     record.Unit
	request    resource.Request // of the alternative that the members have
	own        resource.Request // of the specification itself
	key        queue.Key
	queued     bool // it has a place in the order
	job        *cachedJob
	scope      quota.Charge // the part of a charge that the specification holds
	holding    *cachedTx    // nil: nothing
	// counted is its part in the use of its namespace.
	counted count.Use
	// freed are the nodes whose agents hold nothing of the unit any more.
	freed []record.FreedNode
}

// cachedTx is a live transaction with its shares.
type cachedTx struct {
	tx        resource.TxID
	stored    resource.Revision // of the record
	record    *record.Tx
	unit      *cachedUnit
	committed resource.Revision
	nodes     []resource.NodeID
}

// cachedJob is a job as its key has it, and its units, ascending.
type cachedJob struct {
	record record.Job
	stored resource.Revision
	doc    *api.Job
	units  []*cachedUnit
}

// isHidden reports whether reads show the unit no more: its end in the background
// is durable.
func (u *cachedUnit) isHidden() bool {
	return u.record.Hidden && u.Ending.Asked != nil || u.job != nil && u.job.isHidden()
}

// isHidden is the same of a job.
func (j *cachedJob) isHidden() bool {
	return j.record.Cancelled != nil && j.record.Cancelled.Background
}

// cachedMember is one line among the allocations.
type cachedMember struct {
	unit  *cachedUnit
	index int
}

// remakeUnit makes a unit from its own key, its place in the order and its
// transaction's record.
func (c *Cache) remakeUnit(path string, kvs map[string]record.KV) error {
	before := c.units[path]
	if before != nil {
		c.outdateUnit(before)
		c.dropUnit(before)
	}
	parsed, err := record.ParseUnitPath(path)
	if err != nil {
		return err
	}
	kv, found := kvs[parsed.Key()]
	if !found {
		return nil
	}
	u, err := c.readUnit(kv, before)
	if err != nil {
		return err
	}
	c.addUnit(u)
	c.countUnit(u)
	if err := c.readOrder(u, kvs); err != nil {
		return err
	}
	defer c.outdateUnit(u)
	key := record.TxKey(u.record.TxID)
	held, found := kvs[key]
	if u.record.TxID == "" || !found {
		return nil
	}
	rec, err := c.readTx(held, before)
	if err != nil || rec.State.Terminal() {
		return err
	}
	if err := u.useAlternative(rec.Alternative); err != nil {
		return fmt.Errorf("%s: %w", held.Key, err)
	}
	c.hold(u, rec, held)
	return c.readReady(u, kvs)
}

// readTx reads the record that a unit holds its devices by, unless the unit held them
// by the same record before.
func (c *Cache) readTx(kv record.KV, before *cachedUnit) (*record.Tx, error) {
	if before != nil && before.holding != nil && before.holding.stored == kv.ModRev {
		return before.holding.record, nil
	}
	return read[record.Tx](c, kv)
}

// readOrder takes over a unit's place in the order, and why the unit waits.
func (c *Cache) readOrder(u *cachedUnit, kvs map[string]record.KV) error {
	var kv record.KV
	if kv, u.queued = kvs[u.record.Order().Key()]; !u.queued {
		return nil
	}
	c.queue.Set(u.waiting())
	c.lines.Set(u.waiting())
	order, err := read[record.Order](c, kv)
	u.Waiting, u.Revision = order.Waiting, max(u.Revision, kv.ModRev)
	return err
}

// readReady takes over since when the agents hold all members.
func (c *Cache) readReady(u *cachedUnit, kvs map[string]record.KV) error {
	kv, found := kvs[record.ReadyKey(u.record.TxID)]
	if !found {
		return nil
	}
	r, err := read[record.Ready](c, kv)
	u.Ready, u.Signaled, u.freed, u.Revision = r.AtMillis, r.SignaledMillis, r.Freed, max(u.Revision, kv.ModRev)
	u.Idle, u.IdleBelow = r.IdleMillis, r.IdleBelow
	if u.Ready != 0 {
		c.quotas.reserved.Discharge(u.record.TxID)
	}
	return err
}

// outdateUnit notes that the entries are out of date that a unit is in, or that
// follow from its shares.
func (c *Cache) outdateUnit(u *cachedUnit) {
	namespace := u.record.Namespace
	for i := range u.record.Members { // also those that other units replace: they get the names back
		c.stale[Name{Allocations, namespace, u.MemberName(i)}] = true
	}
	if u.job != nil {
		c.stale[Name{Jobs, namespace, u.record.Name}] = true
	}
	h := u.holding
	if h == nil {
		return
	}
	for name := range c.quotas.of[namespace] {
		c.stale[Name{ResourceQuotas, namespace, name}] = true
	}
	for _, id := range h.nodes {
		c.stale[Name{Nodes, "", string(id)}] = true
		for _, other := range c.nodes[id].shares() { // see cachedNode.takenBy
			if other.of != h && other.of.committed < h.committed && other.of.unit.Phase() == api.Terminating {
				c.outdateMembers(other)
			}
		}
	}
}

// outdateMembers notes that the members of a share are out of date, and the job
// that they are of.
func (c *Cache) outdateMembers(s *share) {
	u := s.of.unit
	for _, m := range s.members {
		c.stale[Name{Allocations, u.record.Namespace, u.MemberName(m.Member)}] = true
	}
	if u.job != nil {
		c.stale[Name{Jobs, u.record.Namespace, u.record.Name}] = true
	}
}

// waiting is the unit as an entry of the queue.
func (u *cachedUnit) waiting() waiting {
	return waiting{u.key, u.record.Queue, u.record.Namespace + "/" + u.record.Name, u.record.Held()}
}

// readUnit reads a unit's key. A unit that was there before, nil for none, saves the
// parts of the work that would come out alike.
func (c *Cache) readUnit(kv record.KV, before *cachedUnit) (*cachedUnit, error) {
	u := &cachedUnit{stored: kv.ModRev}
	if before != nil && before.stored == kv.ModRev {
		u.record, u.path = before.record, before.path
	} else {
		rec, err := read[record.Unit](c, kv)
		if err != nil {
			return nil, err
		}
		u.record, u.path = *rec, rec.Path().String()
		u.record.Queue = cmp.Or(rec.Queue, api.DefaultQueue)
	}
	rec := &u.record
	u.key = queue.Key{Priority: rec.Priority, Epoch: rec.Sequence.Epoch, Counter: rec.Sequence.Counter, Path: u.path}
	u.Unit = shown.Unit{Record: &u.record, Revision: kv.ModRev, Request: &u.request}
	if err := c.readSpec(u, before); err != nil {
		return nil, fmt.Errorf("%s: %w", kv.Key, err)
	}
	return u, nil
}

// readSpec reads the document of a unit that is an allocation, or finds that of
// its job.
func (c *Cache) readSpec(u, before *cachedUnit) error {
	var spec *api.AllocationSpec
	if u.record.Kind == record.JobUnit {
		u.job = c.jobs[u.record.Namespace+"/"+u.record.Name]
		if u.job == nil {
			return errors.New("its job is missing")
		}
		u.Job, u.Revision = u.job.doc, max(u.Revision, u.job.stored)
		if spec = &u.Job.Spec.Template.Spec; len(u.Job.Spec.Members) > 0 {
			first := u.Job.SpecOf(u.record.FirstMember)
			spec = &first
		}
	} else if before != nil && before.Document != nil && bytes.Equal(before.record.Document, u.record.Document) {
		u.Document, u.own, u.request, u.scope = before.Document, before.own, before.own, before.scope
		return nil
	} else {
		doc, status := api.StoredAllocation(u.record.Document)
		if status != nil {
			return fmt.Errorf("document: %w", status)
		}
		doc.Spec.CompleteBy(u.record.Admitted.Fill)
		u.Document, spec = doc, &doc.Spec
	}
	request, status := api.MemberRequest(*spec)
	if status != nil {
		return status
	}
	api.SplitForeign(&request, *spec, u.record.NodeResources)
	user := u.record.Made.User()
	if u.job != nil {
		user = u.job.record.Made.User()
	}
	u.own, u.request, u.scope = request, request, form.Scope(u.record, *spec, u.Job, user)
	return nil
}

// useAlternative has the unit show the request that its members were granted.
func (u *cachedUnit) useAlternative(number int) error {
	if number == 0 {
		return nil
	}
	spec := &api.AllocationSpec{}
	if u.job != nil {
		spec = &u.Job.Spec.Template.Spec
	} else if u.Document != nil {
		spec = &u.Document.Spec
	}
	if number < 0 || number > len(spec.Alternatives) {
		return fmt.Errorf("alternative: %d, and its unit has %d", number, len(spec.Alternatives))
	}
	form := spec.Form(number)
	request, status := api.MemberRequest(form)
	if status != nil {
		return status
	}
	api.SplitForeign(&request, form, u.record.NodeResources)
	u.request, u.Alternative, u.Requested = request, number, form.Resources.Requests
	return nil
}

// addUnit takes a unit in that holds nothing and is not in the queue yet.
func (c *Cache) addUnit(u *cachedUnit) {
	c.units[u.path] = u
	c.countQueued(u, 1)
	c.countGang(u, true)
	c.nameMembers(u)
	if j := u.job; j != nil {
		at, _ := slices.BinarySearchFunc(j.units, u.record.N, func(u *cachedUnit, n int) int { return cmp.Compare(u.record.N, n) })
		j.units = slices.Insert(j.units, at, u)
	}
}

// nameMembers gives the members of a unit their names, but for those that other units
// replace: those have the names as long as they are there.
func (c *Cache) nameMembers(u *cachedUnit) {
	for i := range u.record.Members {
		name := u.record.Namespace + "/" + u.MemberName(i)
		if other := c.members[name].unit; !u.record.HasLost(i) && (u.record.Replaces || other == nil || other.job != u.job || !other.record.Replaces) {
			c.members[name] = cachedMember{u, i}
		}
	}
}

// hold gives a unit the shares in its record.
func (c *Cache) hold(u *cachedUnit, rec *record.Tx, kv record.KV) {
	h := &cachedTx{tx: u.record.TxID, stored: kv.ModRev, record: rec, unit: u, committed: kv.CreateRev} // a record's first state is COMMITTED
	u.holding, c.live[h.tx] = h, u
	var places []shown.Place
	if u.Phase() != api.Pending {
		places = make([]shown.Place, u.record.Members)
	}
	for _, m := range rec.Members {
		if m.Member < len(places) { // as every record of a leader's
			places[m.Member] = shown.Place{Node: m.Node, Assignment: m.Assignment}
		}
		n := c.node(m.Node)
		if n.held[h.tx] == nil {
			n.held[h.tx] = &share{of: h}
			h.nodes = append(h.nodes, m.Node)
		}
		n.held[h.tx].members = append(n.held[h.tx].members, m)
	}
	u.Places, u.Ending = places, shown.EndingOf(&u.record, rec)
	for _, charged := range rec.Charges {
		if charged.Tree == quota.Tree {
			charge := u.scope
			charge.Group, charge.Request, charge.Members = charged.Group, charged.Request, int64(u.record.Held())
			c.quotas.limits.Charge(h.tx, charge)
			c.quotas.reserved.Charge(h.tx, charge) // until readReady
		}
	}
	c.trees.charge(u)
}

// dropUnit takes a unit out with all that it holds.
func (c *Cache) dropUnit(u *cachedUnit) {
	delete(c.units, u.path)
	c.countQueued(u, -1)
	c.countGang(u, false)
	c.discountUnit(u)
	c.queue.Delete(u.waiting())
	c.lines.Delete(u.waiting())
	for i := range u.record.Members {
		if name := u.record.Namespace + "/" + u.MemberName(i); c.members[name].unit == u {
			delete(c.members, name)
		}
	}
	if j := u.job; j != nil {
		j.units = slices.DeleteFunc(j.units, func(other *cachedUnit) bool { return other == u })
		if u.record.Replaces && len(j.units) > 0 && c.units[j.units[0].path] == j.units[0] {
			c.nameMembers(j.units[0])
		}
	}
	if h := u.holding; h != nil {
		delete(c.live, h.tx)
		c.quotas.limits.Discharge(h.tx)
		c.quotas.reserved.Discharge(h.tx)
		c.trees.discharge(h.tx)
		for _, id := range h.nodes {
			if n := c.nodes[id]; n != nil { // else it was deleted since
				delete(n.held, h.tx)
				c.forgetNode(id)
			}
		}
	}
}

// remakeJob makes a job from its key, and has its units made anew.
func (c *Cache) remakeJob(key string, kvs map[string]record.KV, units map[string]bool) error {
	namespace, name, err := record.ParseJobKey(key)
	if err != nil {
		return err
	}
	position := namespace + "/" + name
	c.stale[Name{Jobs, namespace, name}] = true
	if before := c.jobs[position]; before != nil {
		for _, u := range slices.Clone(before.units) {
			units[u.path] = true
			c.outdateUnit(u)
			c.dropUnit(u)
		}
		delete(c.jobs, position)
	}
	kv, found := kvs[key]
	if !found {
		return nil
	}
	rec, err := read[record.Job](c, kv)
	if err != nil {
		return err
	}
	doc, status := api.StoredJob(rec.Document)
	if status != nil {
		return fmt.Errorf("%s: document: %w", kv.Key, status)
	}
	doc.Spec.CompleteBy(rec.Admitted.Fill)
	c.jobs[position] = &cachedJob{record: *rec, stored: kv.ModRev, doc: doc}
	for _, path := range rec.Units {
		units[path.String()] = true
	}
	return nil
}

// memberEntry makes the entry of an allocation.
func (c *Cache) memberEntry(u *cachedUnit, index int) entry {
	m := &memberEntry{Member: shown.Member{Unit: u.Unit, Index: index, Settled: u.Phase() != api.Pending}, key: u.key, together: c.runningWith(u)}
	if m.Places == nil {
		return m
	}
	m.FindLost(c.lossOf)
	at := m.Places[index]
	if n := c.nodes[at.Node]; n != nil && n.node != nil {
		m.Host = n.node.Hardware
		if u.Phase() == api.Terminating {
			later := n.takenBy(u.holding, at.Assignment)
			m.Freed, m.Revision = later > 0 || record.HasFreed(u.freed, at.Node), max(m.Revision, later)
		}
	}
	return m
}

// lossOf is a node's key of lost devices.
func (c *Cache) lossOf(id resource.NodeID) shown.Loss {
	if n := c.nodes[id]; n != nil {
		return n.lost
	}
	return shown.Loss{}
}

// jobEntry makes the entry of a job and its units.
func (c *Cache) jobEntry(j *cachedJob) entry {
	s := &jobEntry{Job: shown.Job{Record: &j.record, Revision: j.stored, Document: j.doc, Units: make([]shown.Unit, len(j.units))}}
	for i, u := range j.units {
		s.Units[i] = u.Unit
		s.Units[i].FindLost(c.lossOf)
		if u.queued && u.Phase() == api.Pending && s.first.Path == "" {
			s.first, s.line = u.key, u.record.Queue
		}
	}
	s.Settled = len(j.units) == 0 || j.units[0].Phase() != api.Pending
	return s
}
