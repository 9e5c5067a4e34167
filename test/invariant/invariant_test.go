package invariant_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

func TestEachRuleFindsWhatBreaksItAndNothingElse(t *testing.T) {
	stories := stories()
	for _, d := range invariant.Rules() {
		if d.Needs&invariant.Principals != 0 {
			continue // no harness gives those
		}
		t.Run(string(d.Rule), func(t *testing.T) {
			story, told := stories[d.Rule]
			if !told {
				t.Fatal("no history breaks it")
			}
			s := newScene()
			story.breaks(s)
			if !slices.ContainsFunc(s.found, func(v invariant.Violation) bool { return v.Rule == d.Rule && len(v.Objects) > 0 && v.Text != "" }) {
				t.Errorf("not found: %v", s.found)
			}
			for _, v := range s.found {
				if v.Rule != d.Rule && !slices.Contains(story.also, v.Rule) {
					t.Errorf("found too: %v", v)
				}
			}
			s = newScene()
			if story.holds(s); len(s.found) > 0 {
				t.Errorf("found where nothing is broken: %v", s.found)
			}
		})
	}
}

func TestAHarnessWithoutTheFactsReportsNothing(t *testing.T) {
	for rule, story := range stories() {
		s := newScene()
		s.c = invariant.New(invariant.Harness{Name: "blind"})
		if story.breaks(s); len(s.found) > 0 {
			t.Errorf("%s: found without any facts: %v", rule, s.found)
		}
	}
}

func TestWhatALiarSaysIsNotChecked(t *testing.T) {
	for rule := range agentStories() {
		if rule == invariant.I9Replay || rule == invariant.QuarantineKept || rule == invariant.I12Promises || rule == invariant.NamesAttempts {
			continue // these are not about the agent's word
		}
		s := newScene()
		s.c.LeaveOut("n1")
		if stories()[rule].breaks(s); len(s.found) > 0 {
			t.Errorf("%s: found though n1 lies: %v", rule, s.found)
		}
	}
}

func TestARestoredBackupPutsBackWhatWasKnown(t *testing.T) {
	s := newScene()
	s.commit("u1", "g1")
	s.note(s.c.Told(path("u1"), "u1"))
	backup, at := s.c.Mark(), s.revision
	s.free(s.release("u1", "g1"))
	s.end("u1", "g1")
	s.commit("u2", "g2")
	s.note(s.c.Told(path("u2"), "u2"))
	s.c.Restore(backup)
	if s.c.Revision() != at || !s.c.Back(tx("u1")) || !s.c.Gone(tx("u2")) || s.c.LastState(tx("u2")) != grant.RecordAbsent {
		t.Errorf("restored to revision %d, want %d; u1 is back: %t, u2 is gone: %t and %q", s.c.Revision(), at, s.c.Back(tx("u1")), s.c.Gone(tx("u2")), s.c.LastState(tx("u2")))
	}
	s.revision = at
	s.show()                                       // n1 does not hold u1 any more, and goes on with u2
	s.note(s.c.Launched("n1", tx("u2")))           // which the store has lost
	s.batch(s.unit("u3", "Pending", ""))           // nobody has told u2's client of anything
	s.batch(s.unit("u1", "Terminating", tx("u1"))) // and u1's client asked for no end
	want := []invariant.Rule{invariant.I4Told}
	var have []invariant.Rule
	for _, v := range s.found {
		have = append(have, v.Rule)
	}
	if !slices.Equal(have, want) {
		t.Errorf("found %v, want %v", s.found, want)
	}
}

// A backup from before the loss of a member names the member's node, whose agent has started
// anew since.
func TestARecordWithoutALostMemberIsBack(t *testing.T) {
	s := newScene()
	s.gang("u1")
	backup := s.c.Mark()
	s.lose("u1")
	if s.c.Restore(backup); !s.c.Back(tx("u1")) {
		t.Error("the record with the lost member counts as that of the backup")
	}
	if s.c.Restore(s.c.Mark()); s.c.Back(tx("u1")) {
		t.Error("a record without a change is back")
	}
}

// An operator who reconciles a restored store cannot tell a grant that its host has
// revived from one whose record the store has lost.
func TestOnlyARevivedGrantIsAdoptedAfterItsEnd(t *testing.T) {
	damaged := func(s *scene) { s.c.Lost("n1", invariant.LostRecords) }
	restored := func(s *scene) { s.c.Restore(s.c.Mark()) }
	for name, c := range map[string]struct {
		before []func(*scene)
		epoch  resource.Epoch // of the leader that makes the record again
		found  []invariant.Rule
	}{
		"its disk has lost the end":           {[]func(*scene){damaged, restored}, 2, nil},
		"its agent lies":                      {[]func(*scene){func(s *scene) { s.c.LeaveOut("n1") }, restored}, 2, nil},
		"the host has lost no synced records": {[]func(*scene){restored}, 2, []invariant.Rule{invariant.I11Again}},
		"the store was not restored":          {[]func(*scene){damaged}, 2, []invariant.Rule{invariant.I11Again, invariant.I12Commits}},
		"its own leader commits it":           {[]func(*scene){damaged, restored}, 1, []invariant.Rule{invariant.I11Again}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.commit("u1", "g1")
			s.free(s.release("u1", "g1"))
			s.end("u1", "g1")
			s.batch(invariant.Record{Tx: tx("u1")})
			for _, happens := range c.before {
				happens(s)
			}
			if c.epoch != 1 {
				s.batch(invariant.Candidate{Key: "leader/1", Gone: true}, invariant.Candidate{Key: "leader/2", Epoch: c.epoch})
			}
			s.hold(tx("u1"), grant.Held, "g1")
			s.batch(put(tx("u1"), recordOf(grant.RecordCommitted, "u1", "g1")), s.unit("u1", "Running", tx("u1")), listed(tx("u1")))
			var have []invariant.Rule
			for _, v := range s.found {
				have = append(have, v.Rule)
			}
			if !slices.Equal(have, c.found) {
				t.Errorf("found %v, want %v", s.found, c.found)
			}
		})
	}
}

// The table in doc.go is what the code says.
func TestTheDocumentationShowsWhoChecksWhat(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, line := range invariant.Table() {
		want.WriteString(strings.TrimRight("//\t"+line, " \t") + "\n")
	}
	if !strings.Contains(string(doc), want.String()) {
		t.Errorf("doc.go has another table than this:\n%s", want.String())
	}
}
