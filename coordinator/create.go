package coordinator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// DefaultQueue is where units wait that name no queue.
const DefaultQueue = "default"

// submission is a validated document, turned into units outside the loop.
type submission struct {
	create rest.Create
	hash   string
	job    *job
	units  []*unit
}

// newUID draws the identity of an object from the system's random numbers.
func newUID(prefix string) string {
	var b [16]byte
	rand.Read(b[:])
	return formatUID(prefix, b)
}

func formatUID(prefix string, b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newUnit builds a unit from a member's specification; job is the document
// that the specification is the template of, nil for an allocation.
func newUnit(ns Namespace, rec record.Unit, spec api.AllocationSpec, job *api.Job) (*unit, error) {
	request, status := api.MemberRequest(spec)
	if status != nil {
		return nil, status
	}
	if rec.Queue == "" {
		rec.Queue = DefaultQueue
	}
	rec.Tenant = ns.Tenant
	demand := place.Unit{Members: rec.Members, Request: request, Constraints: place.ConstraintsOf(spec.Scheduling)}
	charge := quota.Charge{
		Group: rec.Namespace, Request: request.Vector().Scaled(int64(rec.Members)), Members: int64(rec.Members),
		Class: spec.PriorityClass, Terminating: spec.TTL != "",
	}
	if job != nil {
		charge.Class = job.Spec.PriorityClass
		charge.Terminating = charge.Terminating || job.Spec.ActiveDeadlineSeconds != nil
	}
	var groups api.QuotaDemand
	if spec.Quota != nil {
		groups = *spec.Quota
	}
	return &unit{
		record: rec, path: rec.Path().String(), demand: demand, shape: shapeOf(demand), charge: charge, groups: groups, policy: spec.PreemptionPolicy,
	}, nil
}

func hashOf(document []byte) string {
	sum := sha256.Sum256(document)
	return hex.EncodeToString(sum[:16])
}

func (l *leader) submissionOfAllocation(c rest.Create, a *api.Allocation, now time.Time) (*submission, error) {
	priority, status := api.PriorityOf(a.Spec.Priority, a.Spec.PriorityClass)
	if status != nil {
		return nil, status
	}
	u, err := newUnit(l.config.namespace(c.Namespace), record.Unit{
		UID: resource.UnitUID(newUID("alloc")), Kind: record.AllocUnit, Namespace: c.Namespace, Name: a.Metadata.Name,
		Queue: a.Spec.Queue, Priority: priority, Phase: string(api.Pending), Members: 1, Document: c.Document, Created: stamp(now),
	}, a.Spec, nil)
	if err != nil {
		return nil, err
	}
	u.setAllocation(a)
	return &submission{create: c, hash: hashOf(c.Document), units: []*unit{u}}, nil
}

func (l *leader) submissionOfJob(c rest.Create, doc *api.Job, now time.Time) (*submission, error) {
	priority, status := api.PriorityOf(doc.Spec.Priority, doc.Spec.PriorityClass)
	if status != nil {
		return nil, status
	}
	first, growth, gang := api.JobUnits(doc)
	j := &job{doc: doc, gang: gang, record: record.Job{
		UID: newUID("job"), Namespace: c.Namespace, Name: doc.Metadata.Name, Tenant: l.config.namespace(c.Namespace).Tenant,
		Phase: string(api.Queued), Document: c.Document, Created: stamp(now),
	}}
	s := &submission{create: c, hash: hashOf(c.Document), job: j}
	member := 0
	for n := range 1 + growth {
		members := 1
		if n == 0 {
			members = first
		}
		rec := record.Unit{
			UID: resource.UnitUID(newUID("unit")), Kind: record.JobUnit, Namespace: c.Namespace, Name: doc.Metadata.Name, N: n,
			Queue: doc.Spec.Queue, Priority: priority, Phase: string(api.Pending), Members: members, FirstMember: member, Created: j.record.Created,
		}
		if n > 0 {
			rec.Parent = s.units[0].record.UID
		}
		u, err := newUnit(l.config.namespace(c.Namespace), rec, doc.Spec.Template.Spec, doc)
		if err != nil {
			return nil, err
		}
		u.setJob(j)
		member += members
		s.units = append(s.units, u)
		j.addUnit(u)
	}
	return s, nil
}

// undecided is what to watch before a submission is looked at again whose name
// another request is just creating: a refusal would tell of an object that may
// come to nothing, and that reads do not show. "" where there is no such name.
func (l *leader) undecided(s *submission) string {
	first := s.units[0].record
	if key, _, ok := s.requested(); ok {
		if _, repeated := l.requests.get(key); repeated {
			return ""
		}
	}
	for _, u := range s.units {
		for i := range u.record.Members {
			if m := l.members[first.Namespace+"/"+u.memberName(i)]; m != nil && m.unit.stored == 0 {
				return m.unit.path
			}
		}
	}
	return ""
}

// accept takes a submission into the loop's state, or refuses it. It returns
// the unit to watch: an earlier one where the request id is known.
func (l *leader) accept(s *submission) (*unit, *api.Status) {
	first := s.units[0]
	ns := first.record.Namespace
	if made, known, status := l.repetition(s); known {
		if status == nil && s.create.Repeated != nil {
			*s.create.Repeated = true
		}
		return made, status
	}
	if s.job != nil && l.jobs[ns+"/"+s.job.record.Name] != nil {
		return nil, api.Errorf(409, "job %s already exists in namespace %s", s.job.record.Name, ns)
	}
	for _, u := range s.units {
		for i := range u.record.Members {
			name := u.memberName(i)
			if m := l.members[ns+"/"+name]; m != nil {
				if s.job == nil && m.unit.job == nil {
					return nil, api.Errorf(409, "allocation %s already exists in namespace %s", name, ns)
				}
				return nil, api.Errorf(409, "the name %s is taken in namespace %s by an allocation of the same name", name, ns)
			}
		}
	}
	if ops := l.opsOf(s); ops > l.maxOps {
		return nil, api.Errorf(422, "%s has %d units and %d members: storing it takes %d operations, the store takes %d in one transaction",
			first.record.Name, len(s.units), first.record.Members, ops, l.maxOps)
	}
	if status := l.hasRoom(s); status != nil {
		return nil, status
	}
	return first, l.number(s)
}

// overQuota refuses an allocation that may not wait.
func overQuota(short []resource.Reason) *api.Status {
	status := api.Errorf(403, "%s", short[0].Detail)
	status.Details = short
	return status
}

// opsOf is how many operations the largest Txn of a submission takes.
func (l *leader) opsOf(s *submission) int {
	enqueue := 2*len(s.units) + 2
	commit := min(s.units[0].record.Members, max(1, len(l.order))) + commitOps
	return max(enqueue, commit)
}

// number gives the units their places in the order and lets them be tried, or
// stores them first where there are several.
func (l *leader) number(s *submission) *api.Status {
	create := &creation{started: l.now}
	first := s.units[0]
	if s.job != nil {
		key := record.JobKey(s.job.record.Namespace, s.job.record.Name)
		create.compares = append(create.compares, record.Absent(key))
		create.ops = append(create.ops, record.Put(key, record.MustEncode(s.job.record)))
		l.jobs[s.job.record.Namespace+"/"+s.job.record.Name] = s.job
	}
	if key, rec, ok := s.requested(); ok {
		create.ops = append(create.ops, record.PutLeased(record.RequestKey(first.record.Tenant, s.create.RequestID), record.MustEncode(rec), l.requestLease))
		create.request = key
		l.requests.remember(key, newRequest(rec), l.now)
	}
	for _, u := range s.units {
		l.counter++
		u.setSequence(record.Sequence{Epoch: l.epoch, Counter: l.counter})
	}
	first.setCreation(create)
	if len(s.units) == 1 {
		l.add(first)
		return nil
	}
	l.addTogether(s, create)
	return nil
}

// addTogether stores a job of several units in one Txn before any is tried.
func (l *leader) addTogether(s *submission, create *creation) {
	d := decision{compares: create.compares, ops: create.ops}
	for _, u := range s.units {
		l.add(u)
		u.beginWrite(writeCreation)
		key := u.record.Path().Key()
		d.compares = append(d.compares, record.Absent(key))
		d.ops = append(d.ops, record.Put(key, record.MustEncode(u.record)),
			record.Put(u.record.Order().Key(), record.MustEncode(record.Order{UnitUID: u.record.UID})))
	}
	d.done = func(o txn.Outcome, rev resource.Revision, err error) {
		for _, u := range s.units {
			l.enqueued(u, o, rev, err)
		}
	}
	l.settleCreation(s.units[0].creating(), d)
}

// await follows a unit until the store holds it and, for at most wait, until it
// runs or has ended.
func (l *term) await(ctx context.Context, u *unit, wait time.Duration) error {
	var timeout <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C
	}
	expired := wait <= 0
	for {
		var changed <-chan struct{}
		var status *api.Status
		settled := false
		if err := l.do(ctx, func() {
			changed, status = l.changes(u.path), u.err
			stored := u.create == nil
			settled = stored && (expired || u.gone || !unitWaiting(u))
		}); err != nil {
			return err
		}
		if status != nil {
			return status
		}
		if settled {
			return nil
		}
		select {
		case <-changed:
		case <-timeout:
			expired, timeout = true, nil
		case <-l.ended:
			return errDeposed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unitWaiting reports whether a unit, or any unit of its job's first gang, is
// still to be placed.
func unitWaiting(u *unit) bool { return u.waiting() && u.ending == nil }
