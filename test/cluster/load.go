package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// LoadOptions say what clients do. The zero value of a field is its default.
type LoadOptions struct {
	Clients int // 6
	Seed    uint64
	// Prefix begins the names of what they create: one load of a cluster never
	// uses those of another.
	Prefix string
	// Namespaces that they work in; "default".
	Namespaces []string
	// Keep is the most allocations that are left running, to be there at the
	// end; 8. Negative keeps none. They never have more than half of the
	// cluster's devices, so that there is always work that fits.
	Keep int
	// Gangs is how many of ten submissions are gangs; 3. Negative is none.
	Gangs int
	// Pace is the time between two operations of a client; 0 is none.
	Pace time.Duration
	// Patience is how long a client asks for a definite answer; 20 s.
	Patience time.Duration
	// Quota, if set, is the namespace whose limit of GPUs one client changes
	// all the time, within these bounds.
	Quota        string
	QuotaBetween [2]int
}

func (o LoadOptions) withDefaults() LoadOptions {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&o.Clients, 6)
	set(&o.Keep, 8)
	set(&o.Gangs, 3)
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{"default"}
	}
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	return o
}

// Load is clients at work.
type Load struct {
	c       *Cluster
	options LoadOptions
	cancel  context.CancelFunc // of new operations; those under way end by themselves
	ctx     context.Context
	wg      sync.WaitGroup

	mu         sync.Mutex
	kept       int // allocations
	keptGPUs   int
	operations []Operation
	granted    []time.Duration // the calls of submissions that run
}

// StartLoad starts clients, which work until Stop.
func (c *Cluster) StartLoad(o LoadOptions) *Load {
	l := &Load{c: c, options: o.withDefaults()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if l.options.Quota != "" {
		// At its highest before there are clients: whoever sets a limit below
		// what is used already ends nothing by it.
		l.limit(c.Client, l.options.Clients, l.options.QuotaBetween[1])
	}
	for i := range l.options.Clients {
		l.wg.Go(func() { l.client(i) })
	}
	if l.options.Quota != "" {
		l.wg.Go(func() { l.operator(l.options.Clients) })
	}
	c.t.Cleanup(func() { l.Stop() })
	return l
}

// Stop waits for the operations that are under way and returns all that there
// were, in the order of their calls.
func (l *Load) Stop() []Operation {
	l.cancel()
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortStableFunc(l.operations, func(a, b Operation) int { return int(a.Call - b.Call) })
	return l.operations
}

// AwaitProgress waits until so many submissions have been granted that were
// asked for after the call.
func (l *Load) AwaitProgress(n int, why string) {
	l.c.t.Helper()
	now := time.Since(l.c.began)
	programs.Eventually(l.c.t, 2*Patience, "work goes on "+why, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		have := 0
		for _, call := range l.granted {
			if call >= now {
				have++
			}
		}
		if have < n {
			return fmt.Errorf("%d submissions were granted since, want %d", have, n)
		}
		return nil
	})
}

// client submits, looks and deletes under names of its own.
func (l *Load) client(number int) {
	k := l.c.NewClient()
	lot := rand.New(rand.NewPCG(l.options.Seed, uint64(number)))
	for i := 0; l.ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%sc%d-%d", l.options.Prefix, number, i)
		namespace := l.options.Namespaces[lot.IntN(len(l.options.Namespaces))]
		if lot.IntN(10) < l.options.Gangs {
			l.gang(k, number, namespace, name, lot)
		} else {
			l.single(k, number, namespace, name, lot)
		}
		if l.options.Pace > 0 {
			select {
			case <-time.After(l.options.Pace):
			case <-l.ctx.Done():
			}
		}
	}
}

func (l *Load) single(k *Client, number int, namespace, name string, lot *rand.Rand) {
	op := l.begin(k, number, CreateAllocation, namespace, name)
	op.GPUs, op.Members = 1+lot.IntN(2), 1
	a := &api.Allocation{Metadata: api.ObjectMeta{Name: name}}
	a.Spec.Resources.Requests = requests(op.GPUs)
	ctx, cancel := l.patience()
	defer cancel()
	made, err := k.CreateAllocation(ctx, namespace, a, sdk.CreateOptions{IdempotencyKey: key(namespace, name), Wait: 500 * time.Millisecond})
	if err == nil {
		op.see(made)
	}
	l.end(k, op, err)
	switch {
	case op.Outcome == Refused:
		return
	case op.Outcome == Done && op.Phase == api.Running:
		if lot.IntN(4) == 0 && l.keep(op.GPUs) {
			return
		}
	}
	if lot.IntN(2) == 0 {
		l.look(k, number, namespace, name)
	}
	if lot.IntN(6) == 0 {
		l.evict(k, number, namespace, name, lot)
	}
	l.remove(k, number, namespace, name, CreateAllocation, lot)
}

func (l *Load) gang(k *Client, number int, namespace, name string, lot *rand.Rand) {
	op := l.begin(k, number, CreateJob, namespace, name)
	op.GPUs, op.Members = 1+lot.IntN(2), 2+lot.IntN(3)
	ctx, cancel := l.patience()
	defer cancel()
	made, err := k.CreateJob(ctx, namespace, Gang(name, op.Members, op.GPUs), sdk.CreateOptions{
		IdempotencyKey: key(namespace, name), Wait: 500 * time.Millisecond,
	})
	if err == nil {
		op.Phase = made.Status.Phase
	}
	l.end(k, op, err)
	switch {
	case op.Outcome == Refused:
		return
	case op.Outcome == Done && op.Phase == api.Running:
		if lot.IntN(8) == 0 && l.keep(op.Members*op.GPUs) {
			return
		}
	}
	if lot.IntN(4) == 0 {
		l.evict(k, number, namespace, name+"-0", lot)
	}
	l.remove(k, number, namespace, name, CreateJob, lot)
}

// Gang is a job of equal members that start together or not at all.
func Gang(name string, members, gpus int) *api.Job {
	n := int32(members)
	j := &api.Job{Metadata: api.ObjectMeta{Name: name}, Spec: api.JobSpec{Parallelism: &n}}
	j.Spec.Template.Spec.Resources.Requests = requests(gpus)
	j.Spec.Template.Spec.Scheduling.GangScheduling = &api.GangScheduling{MinMembers: &n}
	return j
}

// look reads an allocation.
func (l *Load) look(k *Client, number int, namespace, name string) {
	op := l.begin(k, number, Get, namespace, name)
	ctx, cancel := l.patience()
	defer cancel()
	a, err := k.GetAllocation(ctx, namespace, name, sdk.GetOptions{})
	if err == nil {
		op.see(a)
	}
	l.end(k, op, err)
}

// evict gives notice to what may run: a job goes back to its queue.
func (l *Load) evict(k *Client, number int, namespace, name string, lot *rand.Rand) {
	op := l.begin(k, number, Evict, namespace, name)
	ctx, cancel := l.patience()
	defer cancel()
	_, err := k.Evict(ctx, namespace, name, lot.Int64N(2))
	l.end(k, op, err)
}

// remove deletes what was created.
func (l *Load) remove(k *Client, number int, namespace, name string, kind Kind, lot *rand.Rand) {
	op := l.begin(k, number, Delete, namespace, name)
	ctx, cancel := l.patience()
	defer cancel()
	var err error
	if grace := lot.Int64N(2); kind == CreateJob {
		_, err = k.DeleteJob(ctx, namespace, name, grace)
	} else {
		_, err = k.DeleteAllocation(ctx, namespace, name, grace)
	}
	l.end(k, op, err)
}

// operator raises and lowers a limit.
func (l *Load) operator(number int) {
	k := l.c.NewClient()
	lot := rand.New(rand.NewPCG(l.options.Seed, uint64(number)))
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		low, high := l.options.QuotaBetween[0], l.options.QuotaBetween[1]
		l.limit(k, number, low+lot.IntN(high-low+1))
	}
}

// limit sets the namespace's limit of GPUs.
func (l *Load) limit(k *Client, number, gpus int) {
	op := l.begin(k, number, SetQuota, l.options.Quota, "moving")
	op.GPUs = gpus
	q := &api.ResourceQuota{Kind: "ResourceQuota", Metadata: api.ObjectMeta{Name: op.Name, Namespace: op.Namespace}}
	q.Spec.Hard = map[resource.Name]string{resource.GPU: strconv.Itoa(gpus)}
	ctx, cancel := l.patience()
	defer cancel()
	_, err := k.PutResourceQuota(ctx, op.Namespace, q)
	l.end(k, op, err)
}

// keep takes one of the places for what stays, if it and so many devices are
// left for that.
func (l *Load) keep(gpus int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := l.c.Options.Agents * l.c.Options.GPUs; l.kept >= l.options.Keep || l.keptGPUs+gpus > all/2 {
		return false
	}
	l.kept, l.keptGPUs = l.kept+1, l.keptGPUs+gpus
	return true
}

func (l *Load) patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), l.options.Patience)
}

func (l *Load) begin(k *Client, client int, kind Kind, namespace, name string) *Operation {
	return &Operation{
		Client: client, Kind: kind, Namespace: namespace, Name: name, Call: time.Since(l.c.began), Repeats: -int(k.Repeated.Load()),
	}
}

func (l *Load) end(k *Client, op *Operation, err error) {
	op.finish(time.Since(l.c.began), err)
	op.Repeats += int(k.Repeated.Load())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.operations = append(l.operations, *op)
	if op.Outcome == Done && op.Phase == api.Running && (op.Kind == CreateAllocation || op.Kind == CreateJob) {
		l.granted = append(l.granted, op.Call)
	}
}

// key is the idempotency key of a submission: names are used once.
func key(namespace, name string) string { return namespace + "." + name }

// requests are so many GPUs and little else.
func requests(gpus int) map[resource.Name]string {
	return map[resource.Name]string{resource.GPU: strconv.Itoa(gpus), resource.CPU: "100m", resource.Memory: "64Mi"}
}
