package lead

import (
	"cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// Submitted is a validated document, and what its client says of it.
type Submitted struct {
	Namespace string
	Document  []byte // without blanks between its tokens; it is not changed
	Hash      string // of the document as it was submitted
	RequestID string // "" = none
	// User is the caller, for a dry run, of which no record notes the caller.
	User string
}

// submission is a validated document, turned into units.
type submission struct {
	Submitted
	job   *job
	units []*unit
}

func (l *Leader) submissionOfAllocation(c Submitted, a *api.Allocation) (*submission, *api.Status) {
	if a.Spec.HasWork() {
		return nil, api.Errorf(422, "spec.%s: an Allocation starts no process in this version; submit a Job with spec.template.spec.%[1]s", a.Spec.WorkField())
	}
	if status := a.CheckDomains(); status != nil {
		return nil, status
	}
	if n := len(a.Spec.Alternatives); n > 0 && a.Group().IsGang() {
		return nil, api.Errorf(422, "spec.alternatives: %d entries: the members of a group start together with one request each; leave out alternatives, or submit a Job", n)
	}
	if status := l.judgeForms("spec", a.Spec); status != nil {
		return nil, status
	}
	admitted, status := l.admitted(a.Spec.Priority, a.Spec.PriorityClass, a.Spec.PreemptionPolicy)
	if status != nil {
		return nil, status
	}
	filled := *a // the caller's document stays as it is
	a = &filled
	a.Spec.CompleteBy(admitted.Fill)
	made := l.post.Made()
	u, status := newUnit(l.namespace(c.Namespace).Tenant, record.Unit{
		UID: resource.UnitUID(l.post.UID("alloc")), Kind: record.AllocUnit, Namespace: c.Namespace, Name: a.Metadata.Name,
		Queue: l.queueOf(c.Namespace, a.Spec.Queue), Priority: api.PriorityOf(a.Spec.Priority, a.Spec.PriorityClass), Phase: string(api.Pending), Members: 1, Document: c.Document, Admitted: admitted, Created: l.post.Stamp(), Made: made,
		NodeResources: l.nodeResources(a.Spec),
	}, a.Spec, nil, cmp.Or(made.User(), c.User))
	if status != nil {
		return nil, status
	}
	u.setAllocation(a)
	return &submission{Submitted: c, units: []*unit{u}}, nil
}

func (l *Leader) submissionOfJob(c Submitted, doc *api.Job) (*submission, *api.Status) {
	if status := l.judgeSets(doc); status != nil {
		return nil, status
	}
	if status := doc.CheckDomains(); status != nil {
		return nil, status
	}
	admitted, status := l.admitted(doc.Spec.Priority, doc.Spec.PriorityClass, doc.Spec.Template.Spec.PreemptionPolicy)
	if status != nil {
		return nil, status
	}
	filled := *doc // the caller's document stays as it is
	doc = &filled
	doc.Spec.CompleteBy(admitted.Fill)
	priority := api.PriorityOf(doc.Spec.Priority, doc.Spec.PriorityClass)
	if status := l.refusesWork(doc); status != nil {
		return nil, status
	}
	first, growth, gang := api.JobUnits(doc)
	j := newJob(doc, gang, record.Job{
		UID: l.post.UID("job"), Namespace: c.Namespace, Name: doc.Metadata.Name, Tenant: l.namespace(c.Namespace).Tenant,
		Phase: string(api.Queued), Document: c.Document, Admitted: admitted, Created: l.post.Stamp(), Made: l.post.Made(),
	})
	s := &submission{Submitted: c, job: j}
	member := 0
	for n := range 1 + growth {
		members := 1
		if n == 0 {
			members = first
		}
		rec := record.Unit{
			UID: resource.UnitUID(l.post.UID("unit")), Kind: record.JobUnit, Namespace: c.Namespace, Name: doc.Metadata.Name, N: n,
			Queue: l.queueOf(c.Namespace, doc.Spec.Queue), Priority: priority, Phase: string(api.Pending), Members: members, FirstMember: member, Created: j.record.Created,
			NodeResources: l.nodeResources(doc.MemberSpecs()...),
		}
		if n == 0 {
			rec.StartByMillis = startBy(l.post.Millis(), doc.MaxWait())
		}
		if n > 0 {
			rec.Parent = s.units[0].record.UID
		}
		u, status := newUnit(l.namespace(c.Namespace).Tenant, rec, doc.Spec.Template.Spec, doc, cmp.Or(j.record.Made.User(), c.User))
		if status != nil {
			return nil, status
		}
		u.setJob(j)
		member += members
		s.units = append(s.units, u)
		j.addUnit(u)
	}
	return s, nil
}

// undecided is a unit to wait for before a submission is looked at whose name
// another request is just creating: a refusal would tell of an object that may
// come to nothing, and that reads do not show. nil where there is none.
func (l *Leader) undecided(s *submission) *unit {
	first := s.units[0].record
	if key, _, ok := s.requested(); ok {
		if _, repeated := l.requests.Get(key); repeated {
			return nil
		}
	}
	for _, u := range s.units {
		for i := range u.record.Members {
			if m := l.work.members[first.Namespace+"/"+u.memberName(i)]; m != nil && m.unit.stored == 0 {
				return m.unit
			}
		}
	}
	return nil
}

// accept takes a submission into the loop's state, or refuses it. It returns
// the unit to watch: an earlier one where the request id is known.
func (l *Leader) accept(s *submission) (u *unit, repeated bool, status *api.Status) {
	first := s.units[0]
	if made, known, status := l.repetition(s); known {
		return made, status == nil, status
	}
	if status := l.refusal(s); status != nil {
		return nil, false, status
	}
	if status := l.unsatisfiable(first); status != nil {
		return nil, false, status
	}
	if status := l.memberOverQuota(first); status != nil {
		return nil, false, status
	}
	return first, false, l.assignOrder(s)
}

// refusal is why a submission is not accepted, nil where it is.
func (l *Leader) refusal(s *submission) *api.Status {
	first := s.units[0]
	ns := first.record.Namespace
	if status := l.barredFrom(ns, first.record.Priority); status != nil {
		return status
	}
	if j := l.work.jobs[ns+"/"+first.record.Name]; s.job != nil && j != nil {
		if j.isHidden() {
			return api.Errorf(409, "the name %s is taken in namespace %s until the job that was deleted in the background has stopped", s.job.record.Name, ns).Because(api.AlreadyExists)
		}
		return api.Errorf(409, "job %s already exists in namespace %s", s.job.record.Name, ns).Because(api.AlreadyExists)
	}
	for _, u := range s.units {
		for i := range u.record.Members {
			name := u.memberName(i)
			if m := l.work.members[ns+"/"+name]; m != nil {
				if m.unit.isHidden() {
					return api.Errorf(409, "the name %s is taken in namespace %s until the object that was deleted in the background has stopped", name, ns).Because(api.AlreadyExists)
				}
				if s.job == nil && m.unit.job == nil {
					return api.Errorf(409, "allocation %s already exists in namespace %s", name, ns).Because(api.AlreadyExists)
				}
				return api.Errorf(409, "the name %s is taken in namespace %s by an allocation of the same name", name, ns).Because(api.AlreadyExists)
			}
		}
	}
	if ops := l.opsOf(s); ops > l.post.MaxOps() {
		return l.exceedsTxn(s, ops)
	}
	if status := l.checkGroup(first); status != nil {
		return status
	}
	if status := l.refusesCycle(s); status != nil {
		return status
	}
	if status := l.refusesQueue(s); status != nil {
		return status
	}
	if status := l.hasRoom(s); status != nil {
		return status
	}
	if key, _, ok := s.requested(); ok {
		return l.requests.Refuses(key, first.record.Tenant)
	}
	return nil
}

// assignOrder gives the units their places in the order and lets them be tried, or
// stores them first where there are several.
func (l *Leader) assignOrder(s *submission) *api.Status {
	create := &creation{started: l.post.Now()}
	first := s.units[0]
	if s.job != nil {
		met, _ := l.judgeDependencies(s.job)
		create.add(s.job.creation(met))
		l.work.insertJob(s.job)
	}
	if key, rec, ok := s.requested(); ok {
		op := record.MustPutRecord(record.RequestKey(first.record.Tenant, s.RequestID), rec)
		op.Lease = l.post.Lease()
		create.answer(key, op)
		l.requests.Remember(key, rec.Remembered(), post.InstantOf(l.post.Millis()))
	}
	for _, u := range s.units {
		u.setSequence(l.post.NextArrival())
	}
	first.setCreation(create)
	if s.job != nil {
		l.setHolds(s.job)
	}
	if first.allocation != nil {
		l.seat(first)
	}
	defer l.awaitStart(first)
	if len(s.units) == 1 {
		l.add(first)
		if first.isSuspended() || first.hold != noHold || first.gathers() || l.isHeldByQueue(first) { // no trial will store it
			l.enqueue(first)
		}
		return nil
	}
	l.addTogether(s, create)
	return nil
}

// addTogether stores a job of several units in one Txn before any is tried.
func (l *Leader) addTogether(s *submission, create *creation) {
	d := post.Decision{Compares: create.compares, Ops: create.ops}
	for _, u := range s.units {
		l.add(u)
		u.life.Begin(work.WriteCreation)
		key := u.record.Path().Key()
		d.Compares = append(d.Compares, record.Absent(key))
		d.Ops = append(d.Ops, record.Put(key, record.MustEncode(u.record)),
			record.Put(u.record.Order().Key(), record.MustEncode(l.orderOf(u))))
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		for _, u := range s.units {
			l.enqueued(u, o, rev, err)
		}
	}
	l.post.SettleCreation(s.units[0].creating(), d)
}
