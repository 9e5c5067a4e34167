package lead

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
)

// team is the patch that sets the label team.
func team(name string) api.WorkPatch {
	return api.WorkPatch{Labels: api.MapPatch{Set: map[string]*string{"team": &name}}}
}

// patches asks for the label team of an allocation.
func (x *scene) patches(name, value string) {
	x.clear()
	x.ask(PatchAllocation{"default", name, team(value)})
}

// storedTeam is the label in the store, "" where the unit is not there.
func (x *scene) storedTeam(u *work.Unit) string {
	x.t.Helper()
	key := u.Record.Path().Key()
	kv, found, _, err := x.kv.Get(x.t.Context(), key)
	if err != nil {
		x.t.Fatal(err)
	}
	if !found {
		return ""
	}
	rec, err := record.Decode[record.Unit](key, kv.Value)
	if err != nil {
		x.t.Fatal(err)
	}
	doc, status := api.StoredAllocation(rec.Document)
	if status != nil {
		x.t.Fatal(status)
	}
	return doc.Metadata.Labels["team"]
}

// answered is the answer to the last request: the label of an object, or the
// code of a refusal; "" while there is none.
func (x *scene) answered() string {
	for _, e := range x.left {
		if e.Kind != post.AnswerClient || e.Token != 99 { // that of ask
			continue
		}
		switch o := e.Result.(type) {
		case *api.Allocation:
			if o != nil {
				return o.Metadata.Labels["team"]
			}
		case *api.Job:
			if o != nil {
				return o.Metadata.Labels["team"]
			}
		}
		return fmt.Sprint(e.Status.Code)
	}
	return ""
}

func TestLabelsChangeWhereverAnAllocationIs(t *testing.T) {
	for name, c := range map[string]struct {
		lead func(*scene) *work.Unit
		want string // answered, once the store has
		kept string // in the store at the end
	}{
		"it waits": {func(x *scene) *work.Unit {
			u := x.accepted("a", 9, "")
			x.patches("a", "ml")
			return u
		}, "ml", "ml"},
		"it runs": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.patches("a", "ml")
			return u
		}, "ml", "ml"},
		"it is just being placed": {func(x *scene) *work.Unit {
			u := x.submit("a", 1, "")
			x.patches("a", "ml")
			x.says(u, grant.Reserved)
			return u
		}, "ml", "ml"},
		"it is deleted before the store has answered, and waits": {func(x *scene) *work.Unit {
			u := x.accepted("a", 9, "")
			x.patches("a", "ml")
			x.give(ClientRequest{1, DeleteAllocation{Namespace: "default", Name: "a"}})
			return u
		}, "ml", ""},
		"it is deleted before the store has answered, and runs": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.patches("a", "ml")
			x.give(ClientRequest{1, DeleteAllocation{Namespace: "default", Name: "a"}})
			return u
		}, "ml", "ml"},
		"the Txn of its deletion is first": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.patches("a", "ml")
			x.give(ClientRequest{1, DeleteAllocation{Namespace: "default", Name: "a"}})
			x.asked[0], x.asked[1] = x.asked[1], x.asked[0]
			return u
		}, "ml", "ml"},
		"it is evicted before the store has answered": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.patches("a", "ml")
			x.give(ClientRequest{1, EvictUnit{EvictOptions{Namespace: "default", Name: "a"}, txn.EvictAsked{GraceSeconds: 1, Reason: "test"}}})
			x.asked[0], x.asked[1] = x.asked[1], x.asked[0]
			return u
		}, "ml", "ml"},
		"the answer of the store is lost, and the change landed": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.patches("a", "ml")
			x.loses(true)
			return u
		}, "ml", "ml"},
		"the answer of the store is lost, and the change did not land": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.patches("a", "ml")
			x.loses(false)
			return u
		}, "ml", "ml"},
		"another has written the unit": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.patches("a", "ml")
			x.put(u.Record.Path().Key(), record.MustEncode(func() record.Unit { r := u.Record; r.Document = []byte(`{"metadata":{"name":"a"}}`); return r }()))
			return u
		}, "503", ""},
		"another unit has its name and its document": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.patches("a", "ml")
			x.put(u.Record.Path().Key(), record.MustEncode(func() record.Unit { r := u.Record; r.UID = "u-other"; return r }()))
			return u
		}, "503", "ml"},
		"two changes at once": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.give(ClientRequest{1, PatchAllocation{"default", "a", team("first")}})
			x.patches("a", "ml")
			return u
		}, "ml", "ml"},
		"it is ending": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			x.give(ClientRequest{1, DeleteAllocation{Namespace: "default", Name: "a"}})
			x.patches("a", "ml")
			return u
		}, "409", ""},
		"another version is meant": {func(x *scene) *work.Unit {
			u := x.running("a", 1, "")
			p := team("ml")
			p.ResourceVersion = "1"
			x.clear()
			x.ask(PatchAllocation{"default", "a", p})
			return u
		}, "409", ""},
		"it is a job's member": {func(x *scene) *work.Unit {
			u := x.submitJob("j", 2, 1)
			x.answers()
			x.patches("j-0", "ml")
			return u
		}, "409", "-"},
		"it does not exist": {func(x *scene) *work.Unit {
			x.patches("none", "ml")
			return nil
		}, "404", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u := c.lead(x)
			x.check()
			x.answers()
			if got := x.answered(); got != c.want {
				t.Errorf("answered %q, want %q", got, c.want)
			}
			if c.kept != "-" {
				if got := x.storedTeam(u); got != c.kept {
					t.Errorf("the store has the label %q, want %q", got, c.kept)
				}
			}
			if err := x.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAChangeOfLabelsIsAnsweredWhenItIsDurable(t *testing.T) {
	x := newScene(t)
	x.running("a", 1, "")
	x.patches("a", "ml")
	if got := x.answered(); got != "" {
		t.Errorf("answered %q before the store has", got)
	}
	if got := x.allocation(x.work.Units["default/alloc/a/0"], 0).Metadata.Labels["team"]; got != "" {
		t.Errorf("the label %q is shown before the store has it", got)
	}
	if got, want := x.compares(), "units/default/alloc/a/0 unchanged"; got != want {
		t.Errorf("the write compares %s, want %s", got, want)
	}
	x.answer()
	if got := x.answered(); got != "ml" {
		t.Errorf("answered %q", got)
	}
}

func TestALabelledAllocationThatWaitsIsPlacedLater(t *testing.T) {
	x := newScene(t)
	first := x.running("first", 8, "")
	second := x.running("second", 8, "")
	u := x.accepted("a", 8, "")
	x.patches("a", "ml")
	x.give(ClientRequest{1, DeleteAllocation{Namespace: "default", Name: "first"}})
	x.answers()
	x.settles(first, grant.Tombstone)
	x.settles(u, grant.Reserved)
	if u.Phase() != api.Running || x.storedTeam(u) != "ml" || second.Phase() != api.Running {
		t.Errorf("it is %s with the label %q", u.Phase(), x.storedTeam(u))
	}
}

func TestLabelsOfAJobChange(t *testing.T) {
	x := newScene(t)
	u := x.submitJob("j", 2, 1)
	x.clear()
	x.ask(PatchJob{"default", "j", team("ml")}) // its creation is under way
	x.settles(u, grant.Reserved)
	x.pass(0) // until the next alarm
	x.answers()
	if got := x.answered(); got != "ml" || u.Job.Doc.Metadata.Labels["team"] != "ml" {
		t.Errorf("answered %q", got)
	}
	if got := x.allocation(u, 0).Metadata.Labels["team"]; got != "ml" {
		t.Errorf("its members show the label %q", got)
	}
	x.clear()
	x.ask(PatchJob{"default", "j", team("other")})
	x.give(ClientRequest{1, EndJob{Namespace: "default", Name: "j", Remove: true}})
	x.answers()
	x.pass(0) // until the next alarm
	x.answers()
	x.settles(u, grant.Tombstone)
	x.pass(0) // until the next alarm
	x.answers()
	if got := x.answered(); got != "other" || x.work.Jobs["default/j"] != nil {
		t.Errorf("answered %q, and the job that was deleted meanwhile is there: %t", got, x.work.Jobs["default/j"] != nil)
	}
	x.clear()
	x.ask(PatchJob{"default", "j", team("ml")})
	if got := x.answered(); got != "404" {
		t.Errorf("of a job that is gone: answered %q", got)
	}
	x.check()
}

// TestAChangeToTheValueThatIsThereLandsOnce: the write of a value that the store has already
// gets no answer. The key is as before, which does not say that the write has landed: it may
// land later, and the leader would go on with an older revision.
func TestAChangeToTheValueThatIsThereLandsOnce(t *testing.T) {
	for name, lands := range map[string]bool{"the write is lost": false, "its answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			u := x.running("a", 1, "")
			x.patches("a", "red")
			x.answers()
			before := u.Stored
			x.patches("a", "red")
			x.loses(lands)
			x.answers()
			_, kv := storedAs[record.Unit](x, u.Record.Path().Key())
			if x.answered() != "red" || u.Stored != kv.ModRev || kv.ModRev <= before {
				t.Errorf("answer %q; the key was at %d and is at %d, for the leader at %d; want it written", x.answered(), before, kv.ModRev, u.Stored)
			}
		})
	}
}
