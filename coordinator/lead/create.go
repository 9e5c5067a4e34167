package lead

import (
	"cmp"
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
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
	job   *work.Job
	units []*work.Unit
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
	u, status := work.NewUnit(l.namespace(c.Namespace).Tenant, record.Unit{
		UID: resource.UnitUID(l.post.UID("alloc")), Kind: record.AllocUnit, Namespace: c.Namespace, Name: a.Metadata.Name,
		Queue: l.queueOf(c.Namespace, a.Spec.Queue), Priority: api.PriorityOf(a.Spec.Priority, a.Spec.PriorityClass), Phase: string(api.Pending), Members: 1, Document: c.Document, Admitted: admitted, Created: l.post.Stamp(), Made: made,
		NodeResources: l.nodeResources(a.Spec),
	}, a.Spec, nil, cmp.Or(made.User(), c.User))
	if status != nil {
		return nil, status
	}
	u.SetAllocation(a)
	return &submission{Submitted: c, units: []*work.Unit{u}}, nil
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
	j := work.NewJob(doc, gang, record.Job{
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
			Queue: l.queueOf(c.Namespace, doc.Spec.Queue), Priority: priority, Phase: string(api.Pending), Members: members, FirstMember: member, Created: j.Record.Created,
			NodeResources: l.nodeResources(doc.MemberSpecs()...),
		}
		if n == 0 {
			rec.StartByMillis = startBy(l.post.Millis(), doc.MaxWait())
		}
		if n > 0 {
			rec.Parent = s.units[0].Record.UID
		}
		u, status := work.NewUnit(l.namespace(c.Namespace).Tenant, rec, doc.Spec.Template.Spec, doc, cmp.Or(j.Record.Made.User(), c.User))
		if status != nil {
			return nil, status
		}
		u.SetJob(j)
		member += members
		s.units = append(s.units, u)
		j.AddUnit(u)
	}
	return s, nil
}

// undecided is a unit to wait for before a submission is looked at whose name
// another request is just creating: a refusal would tell of an object that may
// come to nothing, and that reads do not show. nil where there is none.
func (l *Leader) undecided(s *submission) *work.Unit {
	first := s.units[0].Record
	if key, _, ok := s.requested(); ok {
		if _, repeated := l.requests.Get(key); repeated {
			return nil
		}
	}
	for _, u := range s.units {
		for i := range u.Record.Members {
			if m := l.work.Members[first.Namespace+"/"+u.MemberName(i)]; m != nil && m.Unit.Stored == 0 {
				return m.Unit
			}
		}
	}
	return nil
}

// accept takes a submission into the loop's state, or refuses it. It returns
// the unit to watch: an earlier one where the request id is known.
func (l *Leader) accept(s *submission) (u *work.Unit, repeated bool, status *api.Status) {
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
	ns := first.Record.Namespace
	if status := l.barredFrom(ns, first.Record.Priority); status != nil {
		return status
	}
	if j := l.work.Jobs[ns+"/"+first.Record.Name]; s.job != nil && j != nil {
		if j.IsHidden() {
			return api.Errorf(409, "the name %s is taken in namespace %s until the job that was deleted in the background has stopped", s.job.Record.Name, ns).Because(api.AlreadyExists)
		}
		return api.Errorf(409, "job %s already exists in namespace %s", s.job.Record.Name, ns).Because(api.AlreadyExists)
	}
	for _, u := range s.units {
		for i := range u.Record.Members {
			name := u.MemberName(i)
			if m := l.work.Members[ns+"/"+name]; m != nil {
				if m.Unit.IsHidden() {
					return api.Errorf(409, "the name %s is taken in namespace %s until the object that was deleted in the background has stopped", name, ns).Because(api.AlreadyExists)
				}
				if s.job == nil && m.Unit.Job == nil {
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
		return l.requests.Refuses(key, first.Record.Tenant)
	}
	return nil
}

// assignOrder gives the units their places in the order and lets them be tried, or
// stores them first where there are several.
func (l *Leader) assignOrder(s *submission) *api.Status {
	create := &work.Creation{Started: l.post.Now()}
	first := s.units[0]
	if s.job != nil {
		met, _ := l.judgeDependencies(s.job)
		create.Add(s.job.Creation(met))
		l.work.InsertJob(s.job)
	}
	if key, rec, ok := s.requested(); ok {
		op := record.MustPutRecord(record.RequestKey(first.Record.Tenant, s.RequestID), rec)
		op.Lease = l.post.Lease()
		create.Answer(key, op)
		l.requests.Remember(key, rec.Remembered(), post.InstantOf(l.post.Millis()))
	}
	for _, u := range s.units {
		u.SetSequence(l.post.NextArrival())
	}
	first.SetCreation(create)
	if s.job != nil {
		l.setHolds(s.job)
	}
	if first.Allocation != nil {
		l.seat(first)
	}
	defer l.awaitStart(first)
	if len(s.units) == 1 {
		l.add(first)
		if first.IsSuspended() || first.Hold != work.NoHold || first.Gathers() || l.isHeldByQueue(first) { // no trial will store it
			l.enqueue(first)
		}
		return nil
	}
	l.addTogether(s, create)
	return nil
}

// addTogether stores a job of several units in one Txn before any is tried.
func (l *Leader) addTogether(s *submission, create *work.Creation) {
	d := post.Decision{Compares: create.Compares, Ops: create.Ops}
	for _, u := range s.units {
		l.add(u)
		u.Life.Begin(work.WriteCreation)
		key := u.Record.Path().Key()
		d.Compares = append(d.Compares, record.Absent(key))
		d.Ops = append(d.Ops, record.Put(key, record.MustEncode(u.Record)),
			record.Put(u.Record.Order().Key(), record.MustEncode(l.orderOf(u))))
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		for _, u := range s.units {
			l.enqueued(u, o, rev, err)
		}
	}
	l.post.SettleCreation(s.units[0].Creating(), d)
}

// opsOf is how many operations the largest Txn of a submission takes.
func (l *Leader) opsOf(s *submission) int {
	enqueue := 2*len(s.units) + 2
	commit := min(s.units[0].Record.Members, max(1, len(l.state.Nodes()))) + sched.CommitOps
	return max(enqueue, commit)
}

// exceedsTxn refuses a job that one transaction of the store cannot hold.
func (l *Leader) exceedsTxn(s *submission, ops int) *api.Status {
	field, advice := "spec.parallelism", ""
	if s.job != nil && s.job.Doc.Spec.Completions != nil {
		field = "spec.completions"
	}
	if s.job != nil && !s.job.Gang { // each member is a unit
		advice = fmt.Sprintf("ask for %d members at most, ", (l.post.MaxOps()-2)/2)
	}
	return api.Errorf(422, "%s: storing %d members takes %d operations, and the store takes %d in one transaction: %sraise etcd's --max-txn-ops, or submit several jobs",
		field, max(len(s.units), s.units[0].Record.Members), ops, l.post.MaxOps(), advice)
}

// overQuota refuses an allocation that may not wait.
func overQuota(short []resource.Reason) *api.Status {
	status := api.Errorf(403, "%s", short[0].Detail)
	status.Details = short
	return status
}
