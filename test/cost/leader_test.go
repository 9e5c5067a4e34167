package cost_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/ratchet"
)

// call is a call of the leader.
type call struct {
	in     lead.Input // nil for a pass
	heap   heap
	trials uint64
}

// leader is a leader alone, whose calls are counted while counting is set.
type leader struct {
	*alone.Cluster
	t        testing.TB
	counting bool
	meter    *meter
	planted  func() // runs with each counted call, where set
	calls    []call
	running  []string // names of allocations, in the order of their begin
	next     int
}

// newLeader is a leader of hosts of 8 GPUs each.
func newLeader(t testing.TB, m *meter, hosts int) *leader {
	l := &leader{t: t, meter: m, calls: make([]call, 0, 64)}
	rules := lead.Rules{NamespaceAllocations: 1 << 20, Namespaces: map[string]lead.Namespace{"default": {Admission: "queue"}}}
	begun := func(path string) { l.running = append(l.running, strings.Split(path, "/")[2]) }
	l.Cluster = alone.New(alone.Options{Nodes: hosts, Rules: rules, Begun: begun, Around: l.around}, time.Unix(1_700_000_000, 0))
	return l
}

func (l *leader) around(in lead.Input, run func()) {
	if !l.counting {
		run()
		return
	}
	before := l.Leader().Efforts().Trials
	h := l.meter.count(func() {
		run()
		if l.planted != nil {
			l.planted()
		}
	})
	l.calls = append(l.calls, call{in, h, l.Leader().Efforts().Trials - before})
}

// count counts the calls of the leader while f runs.
func (l *leader) count(f func()) []call {
	l.calls, l.counting = l.calls[:0], true
	f()
	l.counting = false
	return l.calls
}

func sum(calls []call) (all heap) {
	for _, c := range calls {
		all = all.add(c.heap)
	}
	return all
}

// document is an allocation of some GPUs and MiB.
func document(name string, gpus, memory int) []byte {
	return fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"resources":{"requests":{"memory":"%dMi","nvidia.com/gpu":"%d"}}}}`, name, memory, gpus)
}

// submit submits the next allocation.
func (l *leader) submit(gpus, memory int) string {
	l.next++
	name := fmt.Sprintf("a%06d", l.next)
	text := document(name, gpus, memory)
	doc, status := api.DecodeAllocation(text)
	if status != nil {
		l.t.Fatal(status)
	}
	if _, status := l.Ask(lead.CreateAllocation{Submitted: lead.Submitted{Namespace: "default", Document: text}, Document: doc}); status != nil {
		l.t.Fatal(status)
	}
	return name
}

func (l *leader) end(name string) {
	request := lead.DeleteAllocation{Namespace: "default", Name: name}
	request.Options.GracePeriodSeconds = new(int64)
	if _, status := l.Ask(request); status != nil {
		l.t.Fatal(status)
	}
}

// isVote is the agent's Yes.
func (c call) isVote() bool {
	e, is := c.in.(lead.AgentEvent)
	if !is {
		return false
	}
	reply, is := e.Event.(grant.Replied)
	return is && reply.State == grant.Reserved
}

// steps finds the steps of an allocation that begins at once among the calls.
func (l *leader) steps(calls []call) map[string]heap {
	steps := map[string]heap{}
	for i, c := range calls {
		switch _, submits := c.in.(lead.ClientRequest); {
		case submits:
			steps["submission"] = c.heap
		case c.in == nil && c.trials > 0:
			steps["decision"] = c.heap
		case c.isVote():
			steps["vote"] = c.heap
			if _, is := calls[i+1].in.(lead.WriteAnswer); !is {
				l.t.Fatalf("%T follows the vote, want the answer to the write of the commit", calls[i+1].in)
			}
			steps["commit"] = calls[i+1].heap
		}
	}
	if len(steps) != 4 {
		l.t.Fatalf("the steps are %v, want a submission, a decision, a vote and a commit", steps)
	}
	return steps
}

const rounds = 100

// leastSteps are the least counts of the steps of allocations on a leader's hosts.
func (l *leader) leastSteps(rounds int) map[string]heap {
	least := map[string]heap{}
	for i := range rounds {
		steps := l.steps(l.count(func() { l.submit(1, 1024) }))
		steps["end"] = sum(l.count(func() { l.end(l.running[i]) }))
		for name, h := range steps {
			if before, known := least[name]; known {
				h = h.least(before)
			}
			least[name] = h
		}
	}
	return least
}

func TestStepsOfAnAllocation(t *testing.T) {
	m := newMeter(t)
	m.settle(t)
	least := newLeader(t, m, 64).leastSteps(rounds)
	figures := least["decision"].figures("leader/decision", "a pass places one GPU on 64 hosts")
	figures = append(figures, newLeader(t, m, 1000).leastSteps(rounds)["decision"].figures("leader/decision-1000", "a pass places one GPU on 1,000 hosts")...)
	for _, s := range []struct{ name, means string }{
		{"submission", "the leader takes a submission of one GPU"},
		{"vote", "an agent's Yes, with the write of the commit"},
		{"commit", "the store's answer to the commit, with that to the client"},
		{"end", "the leader's part of an end, beside no other unit"},
	} {
		figures = append(figures, least[s.name].figures("leader/"+s.name, s.means)...)
	}
	hold(t, "leader", figures)
}

// waiting is how many units wait in the figures of a crowd, of so many classes: the
// classes differ in memory.
const (
	waiting = 16_000
	classes = 16
)

// crowd fills a host, and has the crowd wait: copies of a waiting unit, written
// past the leader, which the next leader loads.
func crowd(t *testing.T, m *meter) *leader {
	l := newLeader(t, m, 1)
	for range 8 {
		l.submit(1, 512)
	}
	like := l.submit(1, 512)
	kv := l.Keys(record.UnitsPrefix + "default/alloc/" + like + "/")[0]
	unit, err := record.Decode[record.Unit](kv.Key, kv.Value)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < waiting; i++ {
		r := unit
		r.Name, r.UID = fmt.Sprint("w", i), resource.UnitUID(fmt.Sprintf("%s-%d", unit.UID, i))
		r.Sequence.Counter += uint64(i)
		r.Document = document(r.Name, 1, 512+i%classes)
		l.Put(r.Path().Key(), record.MustEncode(r))
		l.Put(r.Order().Key(), record.MustEncode(record.Order{UnitUID: r.UID}))
	}
	l.Lead()
	l.isWaiting(waiting)
	return l
}

func (l *leader) isWaiting(want int) {
	l.t.Helper()
	if _, _, _, queued := l.Leader().Sizes(); queued != want {
		l.t.Fatalf("%d units wait, want %d", queued, want)
	}
}

func TestBesideACrowd(t *testing.T) {
	m := newMeter(t)
	l := crowd(t, m)
	m.settle(t)
	end, second := most, most
	for i := range rounds {
		name := l.running[i]
		end = end.least(sum(l.count(func() { l.end(name) })))
		l.submit(1, 512+i%classes)
		l.isWaiting(waiting)
	}
	pass := func() { l.AdvanceTo(l.Now().Add(time.Second)) }
	for range waiting / 100 { // the leader writes why units wait, 200 in a second
		pass()
	}
	judged := l.Leader().Efforts().Judgements
	const seconds = 10
	for range seconds {
		second = second.least(sum(l.count(pass)))
	}
	judged = (l.Leader().Efforts().Judgements - judged) / seconds
	const means = "a second of housekeeping beside 16,000 waiting units whose reasons are written"
	figures := append(end.figures("crowd/end", "an end and the begin of the next unit, beside 16,000 waiting units of 16 classes"), second.figures("crowd/second", means)...)
	figures = append(figures, ratchet.Figure{Name: "crowd/second-judgements", Value: int64(judged), Unit: "judgements", Means: means})
	hold(t, "crowd", figures)
}
