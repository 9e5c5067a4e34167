package objects

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
)

// TestTheGreatestIndexOfAnID: is read, the next number is not.
func TestTheGreatestIndexOfAnID(t *testing.T) {
	for index, good := range map[int64]bool{0: true, math.MaxInt32: true, math.MaxInt32 + 1: false, -1: false} {
		got, err := ParseID(fmt.Sprint("7.", index))
		if (err == nil) != good || good && (got != ID{7, int(index)}) {
			t.Errorf("7.%d is %+v, %v", index, got, err)
		}
	}
}

// TestRenderingsAreKeptUpToTheirBound: the oldest goes first, and is rendered again when asked for.
func TestRenderingsAreKeptUpToTheirBound(t *testing.T) {
	var r rendered
	entry := func(i int) *memberEntry {
		doc := &api.Allocation{}
		return &memberEntry{Member: shown.Member{Unit: shown.Unit{Record: &record.Unit{Name: fmt.Sprint(i), Members: 1}, Document: doc, Request: &resource.Request{}}}}
	}
	var all []*memberEntry
	var shows []*api.Allocation
	for i := range mostRendered {
		all = append(all, entry(i))
		shows = append(shows, r.allocation(all[i]))
	}
	for i, e := range all {
		if r.allocation(e) != shows[i] {
			t.Fatalf("rendering %d of %d is not kept", i+1, mostRendered)
		}
	}
	r.allocation(entry(mostRendered))
	if len(r.by) != mostRendered || len(r.order) != mostRendered || r.order[0] != all[1] || r.by[all[0]] != nil {
		t.Errorf("%d renderings in an order of %d are kept, the oldest is kept: %t; want %d without the oldest", len(r.by), len(r.order), r.by[all[0]] != nil, mostRendered)
	}
	if r.allocation(all[1]) != shows[1] || r.allocation(all[0]) == shows[0] {
		t.Error("the second rendering is not kept, or the first is")
	}
	if r.allocation(nil) != nil {
		t.Error("no entry has a rendering")
	}
}

// classed is an entry of a priority class.
func classed(value int32, rev resource.Revision) entry {
	e := &classEntry{}
	e.Object.Metadata.Name, e.Object.Spec.Value, e.Revision = "c", value, rev
	e.Object.Metadata.ResourceVersion = fmt.Sprint(int64(rev))
	return e
}

// TestAnEventIsRenderedOnce: by the first reader; a deleted object has the revision of the deletion,
// and an unseen change has no type.
func TestAnEventIsRenderedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		before, after entry
		want          EventType
		version       string
	}{
		"a new object":      {nil, classed(1, 5), Added, "5"},
		"a change":          {classed(1, 5), classed(2, 9), Modified, "9"},
		"no visible change": {classed(1, 5), classed(1, 5), "", ""},
		"a deletion":        {classed(1, 5), nil, Deleted, "9"},
	} {
		e := &Event{ID: ID{9, 0}, before: c.before, after: c.after}
		e.render(&View{})
		object, text, before := e.Object, fmt.Sprintf("%p", e.JSON), e.Before
		e.render(&View{})
		if e.Object != object || fmt.Sprintf("%p", e.JSON) != text || e.Before != before {
			t.Errorf("%s: rendered again", name)
		}
		version := ""
		if e.Object != nil {
			version = e.Object.(*api.PriorityClass).Metadata.ResourceVersion
		}
		if e.Type != c.want || version != c.version || (e.JSON == nil) != (c.want == "") || (e.Before == nil) != (c.want == "" || c.before == nil) {
			t.Errorf("%s: %q with version %q, %d bytes, before %v; want %q with version %q", name, e.Type, version, len(e.JSON), e.Before, c.want, c.version)
		}
		if c.want == Deleted && c.before.base().(*api.PriorityClass).Metadata.ResourceVersion != "5" {
			t.Errorf("%s: the object before has another version", name)
		}
	}
}

// TestAReaderOfASelection: objects come into the selection and leave it.
func TestAReaderOfASelection(t *testing.T) {
	class := func(value int32, version string) *api.PriorityClass {
		return &api.PriorityClass{Metadata: api.ObjectMeta{ResourceVersion: version}, Spec: api.PriorityClassSpec{Value: value}}
	}
	high := func(o any) bool { return o.(*api.PriorityClass).Spec.Value > 5 }
	for name, c := range map[string]struct {
		kind          EventType
		before, after int32 // 0: no object
		want          EventType
		value         int32
	}{
		"a new object within":  {Added, 0, 9, Added, 9},
		"a new object without": {Added, 0, 1, "", 0},
		"a change within":      {Modified, 8, 9, Modified, 9},
		"a change without":     {Modified, 1, 2, "", 0},
		"into the selection":   {Modified, 1, 9, Added, 9},
		"out of the selection": {Modified, 9, 1, Deleted, 9},
		"a deletion within":    {Deleted, 9, 0, Deleted, 9},
		"a deletion without":   {Deleted, 1, 0, "", 0},
	} {
		e := &Event{ID: ID{7, 0}, Type: c.kind}
		if c.before != 0 {
			e.Before = class(c.before, "3")
		}
		if e.Object = any(class(c.after, "7")); c.kind == Deleted {
			e.Object = class(c.before, "7")
		}
		got, object := Selected(e, high)
		if got != c.want || (object == nil) != (c.want == "") {
			t.Errorf("%s: %q with %v, want %q", name, got, object, c.want)
			continue
		}
		if object != nil && (object.(*api.PriorityClass).Spec.Value != c.value || object.(*api.PriorityClass).Metadata.ResourceVersion != "7") {
			t.Errorf("%s: %+v, want the value %d at revision 7", name, object, c.value)
		}
		if e.Before != nil && e.Before.(*api.PriorityClass).Metadata.ResourceVersion != "3" {
			t.Errorf("%s: the object before has changed", name)
		}
	}
}

// TestRecordsThatWereDecoded: are used for the touched key, until the next touch and the next
// refresh.
func TestRecordsThatWereDecoded(t *testing.T) {
	c, kvs := New(), map[string]record.KV{}
	name := func(rev resource.Revision) string {
		if err := c.Refresh(kvs, rev, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		m, found := c.View(rev, time.Unix(0, 0)).Member("ml/a")
		if !found {
			return ""
		}
		return string(m.Record.UID)
	}
	unit := func(uid string) record.Unit {
		return record.Unit{UID: resource.UnitUID(uid), Kind: record.AllocUnit, Namespace: "ml", Name: "a", Tenant: "ml", Queue: "default", Members: 1, Phase: string(api.Pending),
			Document: []byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`)}
	}
	stored, known := unit("stored"), unit("known")
	key := stored.Path().Key()
	put := func(rev resource.Revision) {
		kvs[key] = record.KV{Key: key, Value: record.MustEncode(stored), ModRev: rev}
		c.Touch(key)
	}
	c.Know(key, &known) // of no touched key
	put(1)
	if got := name(1); got != "stored" {
		t.Errorf("a record of an untouched key: %q is shown", got)
	}
	put(2)
	c.Know(key, &known)
	if got := name(2); got != "known" {
		t.Errorf("a decoded record: %q is shown", got)
	}
	put(3)
	if got := name(3); got != "stored" {
		t.Errorf("after the refresh: %q is shown", got)
	}
	put(4)
	c.Know(key, &known)
	put(5)
	if got := name(5); got != "stored" {
		t.Errorf("after another touch: %q is shown", got)
	}
}

// TestEndsInTheBackgroundAreHidden: a unit once the end is durable, a job at once.
func TestEndsInTheBackgroundAreHidden(t *testing.T) {
	unit := func(hidden, asked bool, job *cachedJob) *cachedUnit {
		u := &cachedUnit{record: record.Unit{Hidden: hidden}, job: job}
		if asked {
			u.Ending.Asked = &shown.End{}
		}
		return u
	}
	background, foreground := &cachedJob{record: record.Job{Cancelled: &record.Cancellation{Background: true}}}, &cachedJob{record: record.Job{Cancelled: &record.Cancellation{}}}
	for name, c := range map[string]struct {
		got, want bool
	}{
		"a unit":                               {unit(false, false, nil).isHidden(), false},
		"a unit with an end":                   {unit(false, true, nil).isHidden(), false},
		"a unit before the end is durable":     {unit(true, false, nil).isHidden(), false},
		"a unit with an end in the background": {unit(true, true, nil).isHidden(), true},
		"a unit of a job":                      {unit(false, false, &cachedJob{}).isHidden(), false},
		"a unit of a cancelled job":            {unit(false, true, foreground).isHidden(), false},
		"a unit of a hidden job":               {unit(false, false, background).isHidden(), true},
		"a job":                                {(&cachedJob{}).isHidden(), false},
		"a cancelled job":                      {foreground.isHidden(), false},
		"a job with an end in the background":  {background.isHidden(), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: hidden %t, want %t", name, c.got, c.want)
		}
	}
	c := New()
	c.members["ml/a"], c.members["ml/b"] = cachedMember{unit: unit(true, true, nil)}, cachedMember{unit: unit(false, false, background)}
	c.jobs["ml/j"] = background
	for _, n := range []Name{{Allocations, "ml", "a"}, {Allocations, "ml", "b"}, {Jobs, "ml", "j"}} {
		if e := c.entry(n); e != nil {
			t.Errorf("%v is shown", n)
		}
	}
}

// TestALaterCommitHasADevice: of an ending transaction the devices are those of the newest later
// commit with the same device.
func TestALaterCommitHasADevice(t *testing.T) {
	gpu := func(uuid string, milli resource.Milli) resource.Assignment {
		return resource.Assignment{GPUs: []resource.GPUGrant{{UUID: uuid, Milli: milli}}}
	}
	for name, c := range map[string]struct {
		others map[resource.Revision]resource.Assignment
		want   resource.Revision
	}{
		"no other":                  {nil, 0},
		"a later commit":            {map[resource.Revision]resource.Assignment{11: gpu("a", 1000)}, 11},
		"two later commits":         {map[resource.Revision]resource.Assignment{11: gpu("a", 1000), 12: gpu("a", 1000)}, 12},
		"an earlier commit":         {map[resource.Revision]resource.Assignment{9: gpu("a", 1000)}, 0},
		"a commit at the revision":  {map[resource.Revision]resource.Assignment{10: gpu("a", 1000)}, 0},
		"another device":            {map[resource.Revision]resource.Assignment{11: gpu("b", 1000)}, 0},
		"a share beside":            {map[resource.Revision]resource.Assignment{11: gpu("a", 500)}, 0},
		"a share that is too large": {map[resource.Revision]resource.Assignment{11: gpu("a", 501)}, 11},
	} {
		n := &cachedNode{held: map[resource.TxID]*share{}}
		for committed, a := range c.others {
			n.held[resource.TxID(fmt.Sprint(committed))] = &share{of: &cachedTx{committed: committed}, members: []record.Placement{{Assignment: a}}}
		}
		if got := n.takenBy(&cachedTx{committed: 10}, gpu("a", 500)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestWhereAListGoesOn: behind the named object, whether there is such an object or not, within the
// namespace.
func TestWhereAListGoesOn(t *testing.T) {
	v := &View{}
	for k := range v.tables {
		v.tables[k] = new(table)
	}
	for _, n := range []Name{{Jobs, "a", "x"}, {Jobs, "a", "x1"}, {Jobs, "a", "y"}, {Jobs, "a-b", "x"}, {Jobs, "b", "x"}} {
		v.tables[Jobs].Set(n.position(), &jobEntry{})
	}
	for name, c := range map[string]struct {
		namespace string
		after     Name
		want      []string
	}{
		"from the first":               {"", Name{}, []string{"a/x", "a/x1", "a/y", "a-b/x", "b/x"}},
		"of a namespace":               {"a", Name{}, []string{"a/x", "a/x1", "a/y"}},
		"behind an object":             {"", Name{Jobs, "a", "x"}, []string{"a/x1", "a/y", "a-b/x", "b/x"}},
		"behind an object without one": {"a", Name{Jobs, "a", "w"}, []string{"a/x", "a/x1", "a/y"}},
		"behind a missing object":      {"", Name{Jobs, "a", "x0"}, []string{"a/x1", "a/y", "a-b/x", "b/x"}},
		"behind the last":              {"a", Name{Jobs, "a", "y"}, nil},
		"behind the last of all":       {"", Name{Jobs, "b", "x"}, nil},
		"of a namespace without any":   {"c", Name{}, nil},
	} {
		var got []string
		for i := range v.After(Jobs, c.namespace, c.after) {
			got = append(got, i.Namespace+"/"+i.Name.Name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNodesOfOneAddress: each is shown with the others, as they come and leave.
func TestNodesOfOneAddress(t *testing.T) {
	c, kvs := New(), map[string]record.KV{}
	rev := resource.Revision(0)
	move := func(id resource.NodeID, address string, want map[resource.NodeID]int) {
		t.Helper()
		rev++
		key := record.NodeSpecKey(id)
		if address == "gone" {
			delete(kvs, key)
		} else {
			kvs[key] = record.KV{Key: key, Value: record.MustEncode(record.NodeSpec{Hostname: string(id), AgentAddr: address}), ModRev: rev}
		}
		c.Touch(key)
		if err := c.Refresh(kvs, rev, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		got := map[resource.NodeID]int{}
		for n := range c.View(rev, time.Unix(0, 0)).Nodes() {
			if len(n.Beside) > 0 {
				got[n.ID] = len(n.Beside)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s at %q: nodes beside (-want +got):\n%s", id, address, diff)
		}
	}
	type beside = map[resource.NodeID]int
	move("n1", "10.0.0.1:7", beside{})
	move("n2", "10.0.0.1:7", beside{"n1": 1, "n2": 1})
	move("n3", "10.0.0.1:7", beside{"n1": 2, "n2": 2, "n3": 2})
	move("n1", "10.0.0.9:7", beside{"n2": 1, "n3": 1})
	move("n1", "10.0.0.1:7", beside{"n1": 2, "n2": 2, "n3": 2})
	move("n2", "gone", beside{"n1": 1, "n3": 1})
	move("n3", "", beside{})
	move("n1", "gone", beside{})
	if len(c.addresses) != 0 {
		t.Errorf("addresses are left: %v", c.addresses)
	}
}

// TestTheAlternativeOfAUnit: the last alternative is shown, a number beyond is an error.
func TestTheAlternativeOfAUnit(t *testing.T) {
	cpu := func(n string) *api.Requirements {
		return &api.Requirements{Requests: map[resource.Name]string{"cpu": n}}
	}
	for number, want := range map[int]resource.Millicores{0: 0, 1: 2000, 2: 3000} {
		u := &cachedUnit{}
		u.Document = &api.Allocation{Spec: api.AllocationSpec{Resources: *cpu("1"), Alternatives: []api.Alternative{{Resources: cpu("2")}, {Resources: cpu("3")}}}}
		if err := u.useAlternative(number); err != nil || u.request.CPU != want || u.Alternative != number {
			t.Errorf("alternative %d: %d millicores, number %d, %v; want %d", number, u.request.CPU, u.Alternative, err, want)
		}
		for _, wrong := range []int{-1, 3} {
			if err := u.useAlternative(wrong); err == nil {
				t.Errorf("alternative %d of 2 is shown", wrong)
			}
		}
	}
}
