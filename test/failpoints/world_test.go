package failpoints_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

func bubble(t *testing.T, o rig.Options, test func(*testing.T, *rig.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, rig.New(t, o)) })
}

func pass(d time.Duration) { <-time.NewTimer(d).C }

// client is somebody who asks, asks again where there was no answer, and
// remembers what was acknowledged.
type client struct {
	t *testing.T
	c *rig.Cluster

	objects map[string]*object

	mu      sync.Mutex
	failing string // a step whose next occurrence fails
	limits  map[resource.NodeID]time.Duration
	onStep  func(rig.Step)
}

// optIn starts a node's agent again with the assume-dead policy.
func (w *client) optIn(node resource.NodeID, after time.Duration) {
	w.mu.Lock()
	w.limits = map[resource.NodeID]time.Duration{node: after}
	w.mu.Unlock()
	w.c.Agent(node).Restart()
}

func (w *client) assumedDead(node resource.NodeID) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limits[node]
}

// identity is what the store has of a node's agent.
func (w *client) identity(node resource.NodeID) record.NodeIdentity {
	w.t.Helper()
	kv, _, _, err := w.c.Store.Get(w.t.Context(), record.NodeIdentityKey(node))
	if err != nil {
		w.t.Fatal(err)
	}
	i, err := record.Decode[record.NodeIdentity](kv.Key, kv.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// watch lets f see every step from now on.
func (w *client) watch(f func(rig.Step)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onStep = f
}

// fail lets the next occurrence of a step fail.
func (w *client) fail(step string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = step
}

func (w *client) at(s rig.Step) error {
	w.mu.Lock()
	onStep := w.onStep
	w.mu.Unlock()
	if onStep != nil {
		onStep(s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Name != w.failing || s.After {
		return nil
	}
	w.failing = ""
	return errStep
}

// promise sends, ahead of the leader's next Reserve to a node, the Reserve of
// another transaction that a leader once sent and forgot.
func (w *client) promise(node resource.NodeID) {
	var once sync.Once
	w.c.Tap(func(m rig.Message) bool {
		reserve := m.ToAgent.GetReserve()
		if m.Node != node || reserve == nil {
			return !strings.HasPrefix(m.ToAgent.GetAbort().GetTx(), "forgotten.")
		}
		once.Do(func() {
			late := proto.CloneOf(reserve)
			late.Tx = string(resource.NewTxID("forgotten", resource.Epoch(reserve.GetEpoch()), 1<<40, resource.Nonce{}))
			late.Unit, late.Members = "forgotten", late.GetMembers()[:1]
			late.Members[0].Member = 0
			// Should the stream be gone, so is the leader's own.
			_ = m.Inject(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: late}})
		})
		return true
	})
}

// apart keeps a node and the coordinators from each other, or does not any more.
func (w *client) apart(node string, cut bool) {
	for _, k := range []string{"c1", "c2"} {
		for _, way := range [][2]string{{node, k}, {k, node}} {
			if cut {
				w.c.Cut(way[0], way[1])
			} else {
				w.c.Heal(way[0], way[1])
			}
		}
	}
}

// restore puts the store back to what it was before things happened, all but
// what runs as "kept", and returns once both agents have noticed.
func (w *client) restore(happens func()) {
	w.t.Helper()
	w.create(rig.Submission{Name: "kept", GPUs: 1})
	w.runs("kept")
	w.c.Converge()
	backup := w.c.Store.Backup()
	for i := range 500 { // far more than what is written until the agents look
		if _, err := w.c.Store.Txn(w.t.Context(), record.Txn{Then: []record.Op{record.Put("/else", fmt.Append(nil, i))}}); err != nil {
			w.t.Fatal(err)
		}
	}
	happens()
	w.c.Converge()
	pass(time.Second) // so that what the agents hold is on their disks
	w.c.Restore(backup)
	for _, node := range []string{"n1", "n2"} {
		w.phase(node, "Quarantined")
	}
}

// phase waits until the leader shows a node in a phase.
func (w *client) phase(node, want string) {
	w.t.Helper()
	w.c.Eventually(node+" is "+want, func() bool {
		n, err := w.c.Leader().GetNode(w.t.Context(), node)
		return err == nil && n.Status.Phase == want
	})
}

// reconcile ends the quarantine of a node; that it has ended is as good.
func (w *client) reconcile(node, mode string) {
	w.t.Helper()
	w.c.Eventually(node+" is reconciled", func() bool {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		_, err := w.c.Leader().ReconcileNode(ctx, node, api.ReconcileOptions{Mode: mode, GracePeriodSeconds: new(int64)})
		return err == nil || strings.Contains(err.Error(), "is not in quarantine")
	})
	w.phase(node, "Ready")
}

// object is what a client was told of an allocation or a job.
type object struct {
	submission rig.Submission
	job        bool
	running    resource.TxID // of an allocation that was shown as Running
	ended      bool          // its end was asked for
}

func newClient(t *testing.T, c *rig.Cluster) *client {
	return &client{t: t, c: c, objects: map[string]*object{}}
}

// insist asks whoever leads until the answer is one.
func (w *client) insist(what string, ask func(context.Context, *rig.Coordinator) error) {
	w.t.Helper()
	var last error
	w.c.Eventually(what, func() bool {
		for _, k := range w.c.Coordinators() {
			if !k.Up() || !k.Leading() {
				continue
			}
			ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
			last = ask(ctx, k)
			cancel()
			if code := rig.Code(last); last == nil || code != 503 && code != 0 {
				return true
			}
		}
		return false
	})
	if last != nil {
		w.t.Fatalf("%s: %v", what, last)
	}
}

// patch changes the specification of a job.
func (w *client) patch(name, spec string) {
	w.t.Helper()
	w.insist("patch "+name, func(ctx context.Context, k *rig.Coordinator) error {
		_, err := k.PatchJob(ctx, rig.Namespace, name, api.WorkPatch{Spec: []byte(spec)})
		return err
	})
}

// stops waits until nothing of a job runs.
func (w *client) stops(name string) {
	w.t.Helper()
	w.c.Eventually(name+" waits", func() bool {
		done := false
		w.look(w.objects[name], func(phase api.Phase, active int, _ resource.TxID) { done = phase == api.Queued && active == 0 })
		return done
	})
}

func (w *client) create(s rig.Submission) {
	w.t.Helper()
	s.RequestID = "create-" + s.Name
	w.objects[s.Name] = &object{submission: s, job: s.Members > 0}
	w.insist("create "+s.Name, func(ctx context.Context, k *rig.Coordinator) (err error) {
		if s.Members > 0 {
			_, _, err = k.Job(ctx, s)
		} else {
			_, _, err = k.Allocate(ctx, s)
		}
		return err
	})
}

// tree puts a quota tree of GPUs: nodes as "name parent quota".
func (w *client) tree(name string, nodes ...string) {
	w.t.Helper()
	spec := map[string]any{}
	for _, text := range nodes {
		f := strings.Fields(text)
		spec[f[0]] = map[string]any{"parent": f[1], "quota": map[string]string{string(resource.GPU): f[2]}}
	}
	document, err := json.Marshal(map[string]any{"resourceNames": []resource.Name{resource.GPU}, "nodes": spec})
	if err != nil {
		w.t.Fatal(err)
	}
	w.insist("put tree "+name, func(ctx context.Context, k *rig.Coordinator) error {
		_, err := k.PutQuotaTree(ctx, &api.QuotaTree{Kind: api.KindQuotaTree, Metadata: api.ObjectMeta{Name: name}, Spec: document}, false)
		return err
	})
}

// end ends an object; that it is gone already is as good.
func (w *client) end(name string) {
	w.t.Helper()
	o := w.objects[name]
	o.ended = true
	w.insist("end "+name, func(ctx context.Context, k *rig.Coordinator) (err error) {
		if o.job {
			_, err = k.DeleteJob(ctx, rig.Namespace, name, api.DeleteOptions{})
		} else {
			_, err = k.DeleteAllocation(ctx, rig.Namespace, name, api.DeleteOptions{})
		}
		if rig.Code(err) == 404 {
			return nil
		}
		return err
	})
}

// runs waits until all of an object runs.
func (w *client) runs(name string) {
	w.t.Helper()
	o := w.objects[name]
	var shown string
	w.c.Eventually(name+" runs", func() bool {
		done := false
		w.look(o, func(phase api.Phase, active int, tx resource.TxID) {
			shown = fmt.Sprint(phase, active)
			done = phase == api.Running && active == max(1, o.submission.Members)
		})
		return done
	})
	_ = shown
}

// look asks for an object once and checks what is seen against what was told
// before (I4).
func (w *client) look(o *object, see func(phase api.Phase, active int, tx resource.TxID)) {
	w.t.Helper()
	for _, k := range w.c.Coordinators() {
		if !k.Up() || !k.Leading() {
			continue
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
		phase, active, tx, err := show(ctx, k, o)
		cancel()
		switch {
		case rig.Code(err) == 404 && !o.ended && k.Up() && k.Leading():
			w.t.Fatalf("I4: %s was acknowledged and is gone", o.submission.Name)
		case err != nil:
			continue
		case o.running != "" && !o.ended && tx != o.running:
			w.t.Fatalf("I4: %s ran in %s and is %s in %q", o.submission.Name, o.running, phase, tx)
		}
		if phase == api.Running && !o.job {
			o.running = tx
		}
		see(phase, active, tx)
		return
	}
}

func show(ctx context.Context, k *rig.Coordinator, o *object) (api.Phase, int, resource.TxID, error) {
	if o.job {
		j, err := k.GetJob(ctx, rig.Namespace, o.submission.Name, 0)
		if err != nil {
			return "", 0, "", err
		}
		return j.Status.Phase, j.Status.Active, "", nil
	}
	a, err := k.GetAllocation(ctx, rig.Namespace, o.submission.Name, 0)
	if err != nil {
		return "", 0, "", err
	}
	active := 0
	if a.Status.Phase == api.Running {
		active = 1
	}
	return a.Status.Phase, active, a.Status.Transaction, nil
}

// settle is the end of every scenario: everything agrees, what was acknowledged
// stands, and the cluster serves.
func (w *client) settle() {
	w.t.Helper()
	w.c.Converge()
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		if o := w.objects[name]; !o.ended {
			w.look(o, func(api.Phase, int, resource.TxID) {})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		if !w.objects[name].ended {
			w.end(name)
		}
	}
	w.create(rig.Submission{Name: "last", GPUs: 8, Members: 2, Gang: 2})
	w.runs("last")
	w.end("last")
	w.c.Converge()
}
