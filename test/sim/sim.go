package sim

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// Options say what to run.
type Options struct {
	Seed  uint64
	Steps int // with faults; then the faults end and everything must agree
	// Only bounds the parts that the seed may draw; 0 is all of them.
	Only Parts
	// All: the seed draws all parts of Only.
	All bool
	Bug Bug
	// Followed gets every change of the store, unless nil.
	Followed func(record.Batch)
}

// Result is what became of a run.
type Result struct {
	Seed       uint64
	Steps      int // until the end, or the first failure
	Failures   []string
	Passed     time.Duration // of the world's time
	Transcript []byte
	Hash       uint64         // of the transcript
	Stats      map[string]int // how often things happened
}

// namespaces, groups and queues that clients are of. Namespace z has no limit, and
// its group is configured: its units name none.
var (
	limited    = []string{"x", "y"}
	namespaces = append(slices.Clone(limited), "z")
	groups     = []string{"a", "b"}
	queues     = []string{"", "batch", "urgent"}
)

// start is the world's time at the beginning.
const start = time.Hour

// groupOfZ is the group that is configured for namespace z.
const groupOfZ = "a"

// The limits of a namespace, in devices.
const (
	highLimit = 8
	lowLimit  = 4
)

// gpus is an amount of quota. Where units are evicted it is twice as much, so
// that places run out and not only quota, unless quota is to be claimed back.
func (s *Sim) gpus(n int64) int64 {
	if s.evictions && !s.claims {
		n *= 2
	}
	return n * int64(resource.WholeDevice)
}

// Sim is a cluster in one goroutine. All that happens follows from the seed.
type Sim struct {
	rng    *rand.Rand
	bug    Bug
	faults bool
	// trouble is one of trouble.
	trouble int
	clock   time.Duration

	store    *kvStore
	requests []request // on their way to the store
	answers  []answer  // on their way back
	late     []*write  // answered Unknown, and not yet lost

	hosts        []*host
	coordinators []*coordinator
	terms        []*term // those that act
	streams      []*stream
	streamCount  int
	candidates   int
	past         []ghost

	clients []*client // by index, ended ones too
	// lastOfGroup is the client that joined a group last, nil for none.
	lastOfGroup *client
	live        []*client

	checker *invariant.Checker
	begun   map[resource.TxID]int // when each attempt was begun, by number
	dirty   map[*host]bool        // hosts whose ledger or workloads changed
	changed bool                  // the store or what clients know changed
	restoration
	liar liar
	logs map[string]*decisions.Checker // of each coordinator
	// As of the parts.
	evictions, fences, stragglers, modes, claims, evictsLost, edits, rules, trees, alternatives, lines, domains, sets, heals, subgroups bool

	perUser int64         // the limit of each user in GPUs; 0: clients are no users
	quota   quota.Options // of all leaders

	deaths map[resource.NodeID]bool // nodes that were ever confirmed dead

	followed   func(record.Batch) // or nil
	step       int
	transcript bytes.Buffer
	failures   []string
	stats      map[string]int
}

// coordinator is a process that wants to lead.
type coordinator struct {
	name      string
	key       string // of its candidacy, "" for none
	epoch     resource.Epoch
	early     *kvStore // for SumBeforeElection
	preparing bool
	term      *term
	// deposers are the nodes for whose sake it has ended a term.
	deposers map[resource.NodeID]bool
}

// Run runs a seed to its end, or to its first failure.
func Run(o Options) Result {
	s := newSim(o)
	for s.step < o.Steps && len(s.failures) == 0 {
		s.step++
		if !s.restore() {
			s.act()
		}
		s.check()
	}
	if len(s.failures) == 0 {
		s.settle()
	}
	h := fnv.New64a()
	h.Write(s.transcript.Bytes())
	return Result{o.Seed, s.step, s.failures, s.clock - start, s.transcript.Bytes(), h.Sum64(), s.stats}
}

func newSim(o Options) *Sim {
	s := &Sim{
		rng: rand.New(rand.NewPCG(o.Seed, 0x6d7573746572)), bug: o.Bug, faults: true, clock: start, followed: o.Followed,
		store: &kvStore{rev: 1, keys: map[string]record.KV{}, txs: readings[record.Tx]{}, units: readings[record.Unit]{}}, stats: map[string]int{}, begun: map[resource.TxID]int{}, dirty: map[*host]bool{},
		logs: map[string]*decisions.Checker{}, deaths: map[resource.NodeID]bool{},
	}
	s.trouble = pick(s, trouble)
	s.plan(o)
	liarAt, lies := s.planLiar(o)
	_, s.evictions = o.draw(Evictions, 2, 3)
	s.planClaims(o)
	s.planLostDevices(o)
	_, s.fences = o.draw(Fences, 1, 2)
	_, s.stragglers = o.draw(Stragglers, 1, 3)
	_, s.modes = o.draw(Modes, 1, 3)
	_, s.edits = o.draw(Edits, 1, 3)
	_, s.rules = o.draw(Rules, 1, 3)
	_, s.trees = o.draw(Trees, 1, 3)
	_, s.alternatives = o.draw(Alternatives, 1, 3)
	_, s.lines = o.draw(Lines, 1, 2)
	_, s.domains = o.draw(Domains, 1, 3)
	_, s.sets = o.draw(Sets, 1, 3)
	_, s.heals = o.draw(Heals, 1, 2)
	_, s.subgroups = o.draw(Subgroups, 1, 2)
	s.planUsers(o)
	for i := range nodeCount {
		h := &host{
			sim: s, node: resource.NodeID(fmt.Sprintf("n%d", i+1)), boot: 1, rate: 1000, running: map[resource.TxID]*workload{},
			lossless: true,
		}
		s.hosts = append(s.hosts, h)
		if lies && i == liarAt {
			s.liar.host = h
		}
	}
	s.checker = s.newChecker()
	s.store.follow = s.follow
	for _, h := range s.hosts {
		h.startAgent()
	}
	for i := range 2 {
		s.coordinators = append(s.coordinators, &coordinator{name: fmt.Sprintf("c%d", i+1), deposers: map[resource.NodeID]bool{}})
	}
	s.setQuotas()
	return s
}

// logf adds a line to the transcript.
func (s *Sim) logf(format string, args ...any) {
	fmt.Fprintf(&s.transcript, "%5d ", s.step)
	fmt.Fprintf(&s.transcript, format, args...)
	s.transcript.WriteByte('\n')
}

// fail notes that an invariant does not hold.
func (s *Sim) fail(invariant, format string, args ...any) {
	f := invariant + ": " + fmt.Sprintf(format, args...)
	s.logf("FAILED %s", f)
	s.failures = append(s.failures, f)
}

// short is a transaction without its nonce.
func short(tx resource.TxID) string {
	if i := strings.LastIndexByte(string(tx), '.'); i > 0 {
		return string(tx[:i])
	}
	return string(tx)
}

// pick draws one of a list.
func pick[T any](s *Sim, list []T) T { return list[s.rng.IntN(len(list))] }

// takeOut draws one of a list and removes it.
func takeOut[T any](s *Sim, list *[]T) T {
	i := s.rng.IntN(len(*list))
	v := (*list)[i]
	*list = append((*list)[:i], (*list)[i+1:]...)
	return v
}
