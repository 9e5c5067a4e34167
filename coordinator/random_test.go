package coordinator_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

var seedFlag = flag.Uint64("seed", 0, "the one seed that TestRandomFaults runs; 0 runs some that differ each time")

// TestRandomFaults lets clients, agents and coordinators act in any order,
// while processes die, hosts restart and the store forgets answers. The rig
// checks every revision; when the faults end everything must agree, and every
// acknowledged answer must be true.
func TestRandomFaults(t *testing.T) {
	seeds := []uint64{*seedFlag}
	if *seedFlag == 0 {
		seeds = make([]uint64, 20)
		for i := range seeds {
			seeds[i] = rand.Uint64()
		}
	}
	if testing.Short() {
		seeds = seeds[:min(4, len(seeds))]
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runRandomFaults(t, seed, func(*coordinator.Config) {})
		})
	}
}

// runRandomFaults runs one seed, with each coordinator's configuration changed by
// configure.
func runRandomFaults(t *testing.T, seed uint64, configure func(*coordinator.Config)) {
	t.Helper()
	runRandomWorld(t, seed, configure, func(*rig.Cluster) func() { return func() {} })
}

// runRandomWorld is runRandomFaults with an observer, which begins before anything
// happens and is called again at the end.
func runRandomWorld(t *testing.T, seed uint64, configure func(*coordinator.Config), observe func(*rig.Cluster) func()) {
	t.Helper()
	o := limited(20, true)
	o.Namespaces["small"] = lead.Namespace{Hard: resource.Vector{resource.GPU: 4 * int64(resource.WholeDevice)}}
	o.Configure = func(c *coordinator.Config) {
		c.EvictionGrace = time.Duration(1+seed>>8%4) * time.Second
		c.Quota = quota.Options{Settle: seed&1 != 0, EvictAtHard: seed&2 != 0, IgnoreOverdrawn: seed&4 != 0, FewestVictims: seed&8 != 0, PinnedWithinQuota: seed&16 != 0}
		configure(c)
	}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		observed := observe(c)
		defer observed()
		k := c.Bring(4)
		plant(t, k, "Org", org[0]...)
		plant(t, k, "Service", "all nil 28", "gold all 8 hard", "best all 28")
		bind(t, k, rig.Namespace, "", "Org/research", "Service/best")
		bind(t, k, "small", "", "Org/ops")
		w := &world{t: t, c: c, random: rand.New(rand.NewPCG(seed, 0)), late: rand.New(rand.NewPCG(seed, 1)), regroups: seed&32 != 0, objects: map[string]*object{}}
		for range 120 {
			w.step()
			pass(time.Duration(w.random.IntN(300)) * time.Millisecond)
			w.ask(func(ctx context.Context, k *rig.Coordinator) {
				if err := k.Check(ctx); err != nil {
					t.Errorf("%s: %v", k.ID, err)
				}
			})
		}
		w.settle()
		if t.Failed() {
			t.Logf("run again with: go test ./coordinator -run TestRandomFaults -seed %d", seed)
		}
	})
}

// org are the forms of a tree: as it was meant, with less, and without one of
// its groups, which every other run has.
var org = [][]string{
	{"all nil 24", "lab all 20 hard", "research lab 8", "idle lab 10", "ops all 6"},
	{"all nil 12", "lab all 10 hard", "research lab 6", "idle lab 2", "ops all 2"},
	{"all nil 30", "lab all 20 hard", "research lab 20", "idle lab 0", "ops all 10"},
	{"all nil 24", "lab all 20 hard", "idle lab 10", "ops all 6"},
}

// world is the clients' knowledge.
type world struct {
	t      *testing.T
	c      *rig.Cluster
	random *rand.Rand
	// regroups: a group of the tree may go while units are charged to it.
	regroups bool
	wg       sync.WaitGroup
	made     int
	names    []string // in the order of their creation

	mu      sync.Mutex
	objects map[string]*object
	faulty  *rand.Rand // chooses faults of the store; nil for none
	late    *rand.Rand // chooses how late a write lands
}

// object is a client's knowledge of an allocation or a job.
type object struct {
	submission rig.Submission
	job        bool
	created    bool          // acknowledged
	refused    bool          // for good
	ended      bool          // its end was asked for, perhaps in vain
	gone       bool          // its end was acknowledged
	running    resource.TxID // of an allocation that was shown as Running
}

func (w *world) step() {
	switch n := w.random.IntN(24); {
	case n < 7:
		w.create()
	case n < 11:
		w.end()
	case n < 13:
		w.look()
	case n < 15:
		w.disturbAgent()
	case n < 17:
		w.disturbCoordinator()
	case n < 18:
		w.disturbStore()
	case n < 19:
		node := w.someAgent().Node
		patch, yes := api.NodePatch{}, w.random.IntN(2) == 0
		switch taints := []api.Taint{{Key: "t", Effect: "NoSchedule"}}; {
		case w.random.IntN(2) == 0:
			patch.Unschedulable = &yes
		case yes:
			patch.Taints, patch.Labels = &taints, set("zone", "a")
		default:
			patch.Taints, patch.Labels = new([]api.Taint), api.MapPatch{Clear: true}
		}
		w.ask(func(ctx context.Context, k *rig.Coordinator) { _, _ = k.PatchNode(ctx, string(node), patch) })
	case n < 20:
		w.c.CheckGrants()
	case n < 22:
		w.evict()
	default:
		form := w.random.IntN(len(org))
		if form == 3 && !w.regroups {
			form = 0
		}
		w.ask(func(ctx context.Context, k *rig.Coordinator) {
			_, _ = k.PutQuotaTree(ctx, tree("Org", org[form]...), false)
		})
	}
}

// ask runs one client's request against the present leader.
func (w *world) ask(request func(context.Context, *rig.Coordinator)) {
	for _, k := range w.c.Coordinators() {
		if k.Leading() {
			w.wg.Go(func() {
				ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
				defer cancel()
				request(ctx, k)
			})
			return
		}
	}
}

func (w *world) create() {
	w.made++
	o := &object{job: w.random.IntN(3) == 0}
	o.submission = rig.Submission{
		Name: fmt.Sprint("o", w.made), GPUs: 1 + w.random.IntN(8), Priority: int32(w.random.IntN(3)), RequestID: fmt.Sprint("r", w.made),
	}
	switch w.random.IntN(8) {
	case 0, 1:
		o.submission.Namespace = "small"
	case 2:
		o.submission.Quota = &api.QuotaDemand{Groups: map[string]string{"Org": "ops", "Service": "gold"}, Unpreemptable: w.random.IntN(2) == 0}
	}
	if w.random.IntN(2) == 0 {
		o.submission.Policy = "PreemptLowerPriority"
	}
	if o.job {
		o.submission.Members = 1 + w.random.IntN(4)
		o.submission.Gang = w.random.IntN(o.submission.Members + 1)
	}
	w.mu.Lock()
	w.objects[o.submission.Name] = o
	w.mu.Unlock()
	w.names = append(w.names, o.submission.Name)
	w.ask(func(ctx context.Context, k *rig.Coordinator) { w.submit(ctx, k, o) })
}

// submit may be repeated: the request id makes it one.
func (w *world) submit(ctx context.Context, k *rig.Coordinator, o *object) {
	var err error
	if o.job {
		_, _, err = k.Job(ctx, o.submission)
	} else {
		_, _, err = k.Allocate(ctx, o.submission)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch code := rig.Code(err); {
	case err == nil:
		o.created = true
	case code == 403, code == 409 && o.ended:
		o.refused = true
	case code != 503:
		w.t.Errorf("create %+v: %d %v", o.submission, code, err)
	}
}

// some picks an object, or nil.
func (w *world) some() *object {
	if len(w.names) == 0 {
		return nil
	}
	name := w.names[w.random.IntN(len(w.names))]
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects[name]
}

func (w *world) end() {
	o := w.some()
	if o == nil {
		return
	}
	cancels := w.random.IntN(2) == 0
	w.ask(func(ctx context.Context, k *rig.Coordinator) { w.finish(ctx, k, o, o.job && cancels) })
}

// evict is an operator's.
func (w *world) evict() {
	o := w.some()
	if o == nil {
		return
	}
	e := lead.EvictOptions{Namespace: o.submission.Namespace, Name: o.submission.Name, GraceSeconds: new(w.random.Int64N(3))}
	if e.Namespace == "" {
		e.Namespace = rig.Namespace
	}
	if o.job {
		e.Name += "-0"
	}
	w.ask(func(ctx context.Context, k *rig.Coordinator) {
		if _, _, err := k.Evict(ctx, e); err != nil && rig.Code(err) != 404 && rig.Code(err) != 409 && rig.Code(err) != 503 {
			w.t.Errorf("evict %+v: %v", e, err)
		}
	})
}

// finish ends an object, or cancels a job, which keeps it.
func (w *world) finish(ctx context.Context, k *rig.Coordinator, o *object, cancel bool) {
	w.mu.Lock()
	known := o.created
	o.ended = true
	w.mu.Unlock()
	namespace, grace := o.submission.Namespace, int64(0)
	if namespace == "" {
		namespace = rig.Namespace
	}
	options := api.DeleteOptions{GracePeriodSeconds: &grace}
	var err error
	switch {
	case !o.job:
		_, err = k.DeleteAllocation(ctx, namespace, o.submission.Name, options)
	case cancel:
		_, err = k.CancelJob(ctx, namespace, o.submission.Name, options)
	default:
		_, err = k.DeleteJob(ctx, namespace, o.submission.Name, options)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch code := rig.Code(err); {
	case err == nil, code == 404 && known:
		o.gone = o.gone || !cancel
	case code != 404 && code != 503:
		w.t.Errorf("end %s: %d %v", o.submission.Name, code, err)
	}
}

// look checks a client's view of an allocation against its earlier view.
func (w *world) look() {
	o := w.some()
	if o == nil || o.job {
		return
	}
	w.ask(func(ctx context.Context, k *rig.Coordinator) { w.see(ctx, k, o) })
}

func (w *world) see(ctx context.Context, k *rig.Coordinator, o *object) {
	w.mu.Lock()
	created, ended := o.created, o.ended
	w.mu.Unlock()
	namespace := o.submission.Namespace
	if namespace == "" {
		namespace = rig.Namespace
	}
	a, err := k.GetAllocation(ctx, namespace, o.submission.Name, 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch code := rig.Code(err); {
	case code == 404 && created && !ended && !o.ended:
		w.t.Errorf("I4: %s was acknowledged and is gone", o.submission.Name)
	case err != nil:
	case a.Status.Phase == api.Running && o.running == "":
		o.running = a.Status.Transaction
	case a.Status.Phase == api.Preempted:
	case o.running != "" && a.Status.Transaction != o.running && !o.ended:
		w.t.Errorf("I4: %s ran in %s and is %s in %q", o.submission.Name, o.running, a.Status.Phase, a.Status.Transaction)
	}
}

func (w *world) someAgent() *rig.Agent {
	agents := w.c.Agents()
	return agents[w.random.IntN(len(agents))]
}

func (w *world) disturbAgent() {
	a := w.someAgent()
	switch w.random.IntN(4) {
	case 0:
		a.Restart()
	case 1:
		a.Reboot()
	case 2:
		a.Replace()
	case 3:
		a.Stop()
		time.AfterFunc(time.Duration(w.random.IntN(20_000))*time.Millisecond, a.Start)
	}
}

func (w *world) disturbCoordinator() {
	var alive []*rig.Coordinator
	for _, k := range w.c.Coordinators() {
		select {
		case <-k.Ended():
		default:
			alive = append(alive, k)
		}
	}
	switch n := w.random.IntN(4); {
	case len(alive) == 0:
		w.begin("c1")
	case len(alive) == 1 && n == 0:
		if alive[0].ID == "c1" {
			w.begin("c2")
		} else {
			w.begin("c1")
		}
	case n == 1:
		alive[0].Stop()
	default:
		alive[0].Crash()
	}
}

// begin starts a coordinator whose store forgets answers while faulty is set.
func (w *world) begin(id string) {
	k := w.c.StartCoordinator(id)
	k.Gate.Delay = w.delay
	k.Gate.OnTxn(w.fault)
}

// delay is of a write that lands late.
func (w *world) delay() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.late.IntN(5000)) * time.Millisecond
}

func (w *world) fault(record.Txn) rig.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faulty == nil {
		return rig.None
	}
	switch w.faulty.IntN(12) {
	case 0:
		return rig.Lost
	case 1:
		return rig.AnswerLost
	case 2:
		return rig.Late
	}
	return rig.None
}

func (w *world) disturbStore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faulty == nil {
		w.faulty = rand.New(rand.NewPCG(w.random.Uint64(), 0))
	} else {
		w.faulty = nil
	}
}

// settle ends the faults, lets every client learn the outcome of its request,
// and then ends everything.
func (w *world) settle() {
	w.mu.Lock()
	w.faulty = nil
	w.mu.Unlock()
	w.wg.Wait()
	for _, k := range w.c.Coordinators() {
		k.Stop()
	}
	w.begin("c1")
	pass(30 * time.Second) // agents that are to come back have come back
	w.c.AwaitReady(4)
	ctx := w.t.Context()
	plant(w.t, w.c.Leader(), "Org", org[0]...)
	for _, a := range w.c.Agents() {
		if _, err := w.c.Leader().PatchNode(ctx, string(a.Node), api.NodePatch{Unschedulable: new(bool), Taints: new([]api.Taint)}); err != nil {
			w.t.Error(err)
		}
	}
	for _, name := range w.names {
		o := w.objects[name]
		if !o.gone && !o.refused {
			w.submit(ctx, w.c.Leader(), o)
		}
		if !o.job {
			w.see(ctx, w.c.Leader(), o)
		}
	}
	w.c.Converge()
	for _, name := range w.names {
		w.finish(ctx, w.c.Leader(), w.objects[name], false)
	}
	w.c.Eventually("nothing is left", func() bool {
		kvs, _, err := w.c.Store.Range(ctx, record.UnitsPrefix, store.RangeOptions{})
		return err == nil && len(kvs) == 0
	})
	w.c.Converge()
	if n := grants(w.c); n != 0 {
		w.t.Errorf("%d grants are left", n)
	}
}
