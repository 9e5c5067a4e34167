package lead

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/entries"
	"github.com/musterd/muster/coordinator/lead/vacancy"
	"github.com/musterd/muster/coordinator/pace"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// Leader is one term of office as a value: everything that the leader keeps in
// memory. It takes inputs (apply), schedules (pass) and leaves effects; it reads
// no clock, starts no goroutine and calls nobody (input.go, effect.go). The term
// around it owns it and does the rest.
//
// Invariant: every attempt is in attempts exactly while its machine has not
// ended; quotas charge exactly the transactions in attempts.
type Leader struct {
	rules  Rules
	epoch  resource.Epoch
	held   record.Compare // of the leader's key
	maxOps int            // that the store takes in one Txn

	out    outbox
	alarms alarms
	// random draws nonces and uids; its seed comes with the term.
	random interface{ Read([]byte) (int, error) }

	lastToken Token
	writes    map[Token]func(txn.Outcome, resource.Revision, error)
	reads     map[Token]func(kv record.KV, found bool, revision resource.Revision)
	nodeReads map[Token]func(NodeReadAnswer)

	// calls are requests without an answer, by the clients' tokens; waiters those of
	// them that wait for a unit; changed the units that have changed in this input.
	calls    map[Token]*call
	waiters  map[*unit][]*waiter
	changed  []*unit
	settling map[Token]func()
	acting   *call // whose request is being carried out now; nil for none
	entries  entries.Hour

	elected time.Time         // when the term began
	reached resource.Revision // the newest of the store that an answer had
	idle    uint64            // messages that said nothing new
	counter uint64            // of attempts and arrivals in this epoch

	view
	requests requests

	// generation grows whenever something was freed or added; see WakeUps.
	generation uint64
	adoptions  map[resource.TxID]*adoption // that are under way
	// alarm wakes those over the quota of trees; nil where none waits for a time.
	alarm *alarm

	reconciling    bool            // a node is
	reconciliation *reconciliation // of that node; nil: none is
	restored       bool            // it is in the account that the store was
	looking        bool            // whether this term is still of use to an agent that refused it

	recovered []recovered  // transactions to go on with, until resumes
	config    []edit.Write // of the configuration, that are not durable yet

	requestLease record.LeaseID
	compactedAt  time.Time
	compactRev   resource.Revision // the store's revision at compactedAt
	leasedAt     time.Time
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
	census       census             // zero before the first creation
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
	return &Leader{
		rules: b.Rules, epoch: b.Epoch, held: b.Held, maxOps: b.MaxOps, random: rand.NewChaCha8(b.Seed),
		view:       newView(&b.Rules, resource.Revision(b.Epoch), b.Now),
		generation: 1, leasedAt: b.Now, elected: b.Now,
		retired: newRetired(), partly: vacancy.New(),
		activity:  newActivity(),
		writes:    map[Token]func(txn.Outcome, resource.Revision, error){},
		reads:     map[Token]func(record.KV, bool, resource.Revision){},
		nodeReads: map[Token]func(NodeReadAnswer){},
		calls:     map[Token]*call{}, waiters: map[*unit][]*waiter{}, settling: map[Token]func(){},
	}
}

// nextTx draws an attempt's identifier.
func (l *Leader) nextTx(unit resource.UnitUID) resource.TxID {
	l.counter++ // model: mutant ATTEMPT_REUSED
	var nonce resource.Nonce
	l.random.Read(nonce[:])
	return resource.NewTxID(unit, l.epoch, l.counter, nonce)
}

// uid draws the identity of an object that the leader makes.
func (l *Leader) uid(prefix string) string {
	var b [16]byte
	l.random.Read(b[:])
	return formatUID(prefix, b)
}

// notify notes that a unit has changed, for the requests that wait for the unit or
// its job.
func (l *Leader) notify(u *unit) {
	if r := l.reconciliation; r != nil { // it may wait for the unit
		r.news = true
	}
	if len(l.waiters[u]) > 0 {
		l.changed = append(l.changed, u)
	}
	if u.job != nil {
		l.notifyJob(u.job)
	}
}

// notifyJob notes that a job has changed, for the jobs that depend on it, and goes on with
// what waits for the job.
func (l *Leader) notifyJob(j *job) {
	l.dependents.note(j)
	l.goOnWith(j)
}

// goOnWith goes on with the steps that wait for a job.
func (l *Leader) goOnWith(j *job) {
	for _, then := range j.takeThen() {
		l.after(0, then)
	}
}

func formatUID(prefix string, b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
