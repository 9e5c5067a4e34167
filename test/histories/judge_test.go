package histories

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
)

// limits of the tests.
var limits = map[string]int{"ns": 3}

// at builds operations: client and times in milliseconds.
func at(client int, call, back int, o Op) Op {
	o.Client, o.Call, o.Return = client, time.Duration(call)*time.Millisecond, time.Duration(back)*time.Millisecond
	if o.Namespace == "" {
		o.Namespace = "ns"
	}
	if o.Name == "" {
		o.Name = "a"
	}
	return o
}

func submitted(uid string, phase api.Phase, devices ...string) Op {
	return Op{Verb: Submit, GPUs: len(devices), Answer: Shown, UID: uid, Phase: phase, Devices: devices}
}

func seen(uid string, phase api.Phase, devices ...string) Op {
	return Op{Verb: Read, Answer: Shown, UID: uid, Phase: phase, Devices: devices}
}

func released(uid string) Op {
	return Op{Verb: Release, Answer: Shown, UID: uid, Phase: api.Terminating}
}

func answered(verb Verb, a Answer) Op { return Op{Verb: verb, Answer: a, GPUs: 1} }

func named(name string, o Op) Op {
	o.Name = name
	return o
}

var verdicts = map[string]struct {
	history []Op
	// want is a part of the problem that is found; "" means that some order
	// explains the history.
	want string
}{
	"a life": {[]Op{
		at(1, 0, 10, submitted("u", api.Pending)), at(1, 11, 12, seen("u", api.Running, "n1 g1")), at(2, 13, 14, released("u")),
		at(2, 15, 16, seen("u", api.Terminating)), at(1, 17, 18, answered(Read, Missing)), at(1, 19, 20, submitted("v", api.Running, "n1 g1")),
	}, ""},
	"a read during the submit sees what its answer has not": {[]Op{
		at(1, 0, 100, submitted("u", api.Running, "n1 g1")), at(2, 10, 20, seen("u", api.Pending)), at(2, 30, 40, seen("u", api.Running, "n1 g1")),
	}, ""},
	"a submit without an answer happens much later": {[]Op{
		at(1, 0, 10, answered(Submit, Lost)), at(2, 20, 30, answered(Read, Missing)), at(2, 40, 50, seen("u", api.Pending)),
	}, ""},
	"a submit without an answer never happens": {[]Op{
		at(1, 0, 10, answered(Submit, Lost)), at(2, 20, 30, answered(Read, Missing)), at(2, 40, 50, submitted("v", api.Pending)),
	}, ""},
	"a release without an answer ends a later object": {[]Op{
		at(1, 0, 10, answered(Release, Lost)), at(2, 20, 30, submitted("u", api.Running, "n1 g1")), at(2, 40, 50, answered(Read, Missing)),
	}, ""},
	"a device goes on once its owner may be gone": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(1, 20, 60, released("u")),
		at(2, 30, 40, named("b", submitted("v", api.Running, "n1 g1"))),
	}, ""},
	"a deletion that finds nothing undoes a submit under way": {[]Op{
		at(1, 0, 100, answered(Submit, Undone)), at(2, 10, 20, answered(Release, Missing)), at(1, 110, 120, answered(Read, Missing)),
	}, "! "},
	"a deletion of a submit under way": {[]Op{
		at(1, 0, 100, submitted("u", api.Terminating)), at(2, 10, 20, released("u")), at(1, 110, 120, answered(Read, Missing)),
	}, ""},
	"a refusal for lack of room": {[]Op{at(1, 0, 10, answered(Submit, NoRoom)), at(1, 20, 30, answered(Read, Missing))}, ""},
	"the name is taken by one that ends": {[]Op{
		at(1, 0, 10, submitted("u", api.Pending)), at(1, 20, 30, released("u")), at(2, 40, 50, answered(Submit, Exists)),
	}, ""},

	"an eviction": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, answered(Evict, Shown)), at(2, 40, 50, seen("u", api.Terminating)),
		at(2, 60, 70, seen("u", api.Preempted)), at(2, 60, 70, answered(Submit, Exists)), at(1, 80, 90, released("u")), at(1, 100, 110, answered(Read, Missing)),
	}, ""},
	"an evicted one's device goes on": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, answered(Evict, Shown)),
		at(2, 40, 50, named("b", submitted("v", api.Running, "n1 g1"))),
	}, ""},
	"an evicted one vanishes": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, answered(Evict, Shown)), at(2, 40, 50, answered(Read, Missing)),
	}, "name ns/a"},
	"an evicted one runs": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, answered(Evict, Shown)), at(2, 40, 50, seen("u", api.Running, "n1 g1")),
	}, "name ns/a"},
	"it is preempted and nobody asked": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, seen("u", api.Preempted)),
	}, "name ns/a"},
	"what runs is said not to run": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, answered(Evict, Idle)),
	}, "name ns/a"},

	"a lost acknowledgement": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, answered(Read, Missing)),
	}, "name ns/a"},
	"an acknowledged object is another later": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, seen("v", api.Running, "n1 g1")),
	}, "name ns/a"},
	"it is running and then waits again": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, seen("u", api.Pending)),
	}, "name ns/a"},
	"its devices change": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, seen("u", api.Running, "n1 g2")),
	}, "name ns/a"},
	"it ends and nobody asked": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 20, 30, seen("u", api.Terminating)),
	}, "name ns/a"},
	"two of one name": {[]Op{
		at(1, 0, 10, submitted("u", api.Pending)), at(2, 20, 30, submitted("v", api.Pending)),
	}, "name ns/a"},
	"a stale read after an acknowledged release": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(1, 20, 30, released("u")), at(2, 40, 50, seen("u", api.Running, "n1 g1")),
	}, "name ns/a"},
	"resurrection": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(1, 20, 30, released("u")),
		at(2, 40, 50, answered(Read, Missing)), at(2, 60, 70, seen("u", api.Terminating)),
	}, "name ns/a"},
	"a refused name that nobody has": {[]Op{
		at(1, 0, 10, answered(Read, Missing)), at(1, 20, 30, answered(Submit, Exists)),
	}, "name ns/a"},
	"what was refused is there": {[]Op{
		at(1, 0, 10, answered(Submit, NoRoom)), at(1, 20, 30, seen("u", api.Pending)),
	}, "name ns/a"},
	"a double grant": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1")), at(2, 5, 20, named("b", submitted("v", api.Running, "n1 g2", "n1 g1"))),
	}, "device n1 g1"},
	"a double grant that later reads tell": {[]Op{
		at(1, 0, 10, submitted("u", api.Pending)), at(2, 0, 10, named("b", submitted("v", api.Pending))),
		at(1, 20, 30, seen("u", api.Running, "n1 g1")), at(2, 20, 30, named("b", seen("v", api.Running, "n1 g1"))),
		at(1, 40, 50, released("u")),
	}, "device n1 g1"},
	"more than the quota": {[]Op{
		at(1, 0, 10, submitted("u", api.Running, "n1 g1", "n1 g2")), at(2, 0, 10, named("b", submitted("v", api.Running, "n2 g1", "n2 g2"))),
	}, "quota of ns"},
}

func TestHistoriesAreJudged(t *testing.T) {
	for name, c := range verdicts {
		t.Run(name, func(t *testing.T) {
			v := Judge(c.history, limits, time.Minute)
			found := strings.Join(v.Problems, "\n")
			if len(v.Undecided) > 0 {
				t.Errorf("undecided: %v", v.Undecided)
			}
			if c.want == "" && found != "" || !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// world is a cluster that does one thing at a time: the oracle. Its histories
// are legal by construction, however the calls overlap.
type world struct {
	lot     *rand.Rand
	now     int
	objects map[string]*thing
	free    []string // devices
	next    int
	history []Op
}

type thing struct {
	uid     string
	phase   api.Phase
	devices []string
}

// act does one operation at the present moment, with a call before and an
// answer after it, or never one.
func (w *world) act(client int) {
	name := fmt.Sprintf("a%d", w.lot.IntN(3))
	have := w.objects[name]
	o := Op{Namespace: "ns", Name: name}
	switch w.lot.IntN(4) {
	case 0, 1:
		o.Verb, o.GPUs = Submit, 1
		switch {
		case have != nil:
			o.Answer = Exists
		case len(w.free) == 0:
			o.Answer = NoRoom
		default:
			w.next++
			have = &thing{uid: fmt.Sprint("u", w.next), phase: api.Running, devices: w.free[:1:1]}
			w.free, w.objects[name] = w.free[1:], have
			o.show(have)
		}
	case 2:
		o.Verb = Read
		if o.Answer = Missing; have != nil {
			o.show(have)
		}
	default:
		o.Verb = Release
		if o.Answer = Missing; have != nil {
			w.free = append(w.free, have.devices...)
			have.phase, have.devices = api.Terminating, nil
			delete(w.objects, name)
			o.show(have)
		}
	}
	if w.lot.IntN(12) == 0 {
		o = Op{Verb: o.Verb, Namespace: o.Namespace, Name: o.Name, GPUs: o.GPUs, Answer: Lost}
	}
	w.now += 10
	w.history = append(w.history, at(client, w.now-w.lot.IntN(25), w.now+w.lot.IntN(25), o))
}

func (o *Op) show(have *thing) {
	o.Answer, o.UID, o.Phase, o.Devices = Shown, have.uid, have.phase, have.devices
}

func legal(seed uint64, size int) []Op {
	w := &world{lot: rand.New(rand.NewPCG(seed, 1)), objects: map[string]*thing{}, free: []string{"n1 g1", "n1 g2", "n2 g1"}}
	for i := range size {
		w.act(i % 5)
	}
	return w.history
}

func TestWhatHappenedInSomeOrderIsAccepted(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		history := legal(rapid.Uint64().Draw(r, "seed"), rapid.IntRange(1, 60).Draw(r, "size"))
		if v := Judge(history, limits, time.Minute); len(v.Problems)+len(v.Undecided) > 0 {
			r.Fatalf("%v\nundecided: %v", strings.Join(v.Problems, "\n"), v.Undecided)
		}
	})
}

// A legal history to which one answer is added that no order explains.
func TestOneImpossibleAnswerIsFound(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		history := legal(rapid.Uint64().Draw(r, "seed"), rapid.IntRange(5, 60).Draw(r, "size"))
		end := history[len(history)-1].Return
		for _, o := range history {
			end = max(end, o.Return)
		}
		late := func(o Op) Op { o.Call, o.Return = end+time.Second, end+2*time.Second; return o }
		// A name that is never without an answer has a state that is known.
		certain := slices.DeleteFunc(slices.Clone(history), func(o Op) bool { return o.Answer == Lost })
		gone := map[string]bool{}
		for _, o := range history {
			gone[o.Name] = gone[o.Name] || o.Answer == Lost
		}
		certain = slices.DeleteFunc(certain, func(o Op) bool { return gone[o.Name] || o.Answer != Shown })
		if len(certain) == 0 {
			r.Skip("nothing is certain")
		}
		o := certain[rapid.IntRange(0, len(certain)-1).Draw(r, "which")]
		o.Verb, o.UID, o.Phase, o.Devices = Read, "nobody's", api.Running, []string{"n9 g9"}
		if v := Judge(append(history, late(o)), limits, time.Minute); len(v.Problems) == 0 {
			r.Fatalf("accepted %v", late(o))
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	history := legal(1, 400)
	b.ReportMetric(float64(len(history)), "ops")
	for b.Loop() {
		if v := Judge(history, limits, time.Minute); len(v.Problems) > 0 {
			b.Fatal(v.Problems)
		}
	}
}

func ExampleJudge() {
	history := []Op{
		{Verb: Submit, Namespace: "ns", Name: "train", Call: 0, Return: 5, Answer: Shown, UID: "u1", Phase: api.Pending},
		{Client: 1, Verb: Read, Namespace: "ns", Name: "train", Call: 7, Return: 9, Answer: Missing},
	}
	v := Judge(history, nil, time.Second)
	fmt.Println(len(v.Problems), "problem:", strings.SplitN(v.Problems[0], "\n", 2)[0])
	// Output: 1 problem: name ns/train: no order explains
}
