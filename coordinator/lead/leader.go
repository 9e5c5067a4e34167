package lead

import (
	"time"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/vacancy"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Leader is one term of office as a value: everything that the leader keeps in
// memory. It takes inputs (apply), schedules (pass) and leaves effects; it reads
// no clock, starts no goroutine and calls nobody (input.go, post). The term
// around it owns it and does the rest.
//
// Invariant: every attempt is in attempts exactly while its machine has not
// ended; quotas charge exactly the transactions in attempts.
type Leader struct {
	rules Rules
	held  record.Compare // of the leader's key

	post *post.Post
	desk *desk.Desk

	reached resource.Revision // the newest of the store that an answer had
	idle    uint64            // messages that said nothing new

	view
	requests desk.Memory

	// generation grows whenever something was freed or added; see WakeUps.
	generation uint64
	adoptions  map[resource.TxID]*adoption // that are under way
	// alarm wakes those over the quota of trees; nil where none waits for a time.
	alarm *post.Alarm

	reconciling    bool            // a node is
	reconciliation *reconciliation // of that node; nil: none is
	restored       bool            // it is in the account that the store was
	looking        bool            // whether this term is still of use to an agent that refused it

	recovered []recovered  // transactions to go on with, until resumes
	config    []edit.Write // of the configuration, that are not durable yet

	compactedAt  time.Time
	compactRev   resource.Revision // the store's revision at compactedAt
	retired      retired
	readyPace    pace.Bucket
	waiting      waitingNews
	finished     finished
	seats        seatNews
	fates        fates
	unwritten    []resource.TxID // all of whose members are held, which the store is still to know
	partly       vacancy.Book    // nodes that have freed their members before the others
	strays       []resource.TxID // keys of record.ReadyPrefix beside no record
	observedPace pace.Bucket
	observedAt   int                // position of the node that writeObserved begins with
	sweptAt      time.Time          // of fences
	account      *decisions.Tracker // nil: nobody keeps one
	census       work.Census        // zero before the first creation
	activity     activity           // for monitoring alone
	// turns are changes of quotas and other objects, which wait for the first of them: it is
	// being written.
	turns []func(done func())
}

// Beginning is what a term begins with.
type Beginning struct {
	Rules  Rules
	Epoch  resource.Epoch
	Held   record.Compare // of the leader's key
	MaxOps int            // that the store takes in one Txn
	Now    time.Time
	Seed   [32]byte // of nonces and uids
}

// NewLeader returns a leader that knows nothing yet; Load comes next.
func NewLeader(b Beginning) *Leader {
	office := post.New(b.Epoch, b.MaxOps, b.Now, b.Seed)
	return &Leader{
		rules: b.Rules, held: b.Held, post: office, desk: desk.New(office),
		view:       newView(&b.Rules, resource.Revision(b.Epoch), b.Now),
		generation: 1,
		retired:    newRetired(), partly: vacancy.New(),
		activity: newActivity(), requests: desk.NewMemory(desk.MostRequestIDs),
	}
}

// notify notes that a unit has changed, for the requests that wait for the unit or
// its job.
func (l *Leader) notify(u *work.Unit) {
	if r := l.reconciliation; r != nil { // it may wait for the unit
		r.news = true
	}
	l.desk.Changed(changesOf(u))
	if u.Job != nil {
		l.notifyJob(u.Job)
	}
}

// notifyJob notes that a job has changed, for the jobs that depend on it, and goes on with
// what waits for the job.
func (l *Leader) notifyJob(j *work.Job) {
	l.work.Dependents.Note(j)
	l.goOnWith(j)
}

// goOnWith goes on with the steps that wait for a job.
func (l *Leader) goOnWith(j *work.Job) {
	for _, then := range j.TakeThen() {
		l.post.After(0, then)
	}
}
