package ipc

import (
	"testing"

	"github.com/hashicorp/serf/serf"
)

func TestFiltersPickEvents(t *testing.T) {
	join := serf.MemberEvent{Type: serf.EventMemberJoin}
	for filters, c := range map[string]struct {
		event serf.Event
		want  bool
	}{
		"":                       {join, true},
		"*":                      {serf.UserEvent{Name: "drill"}, true},
		"member-join":            {join, true},
		"member-leave":           {join, false},
		"user":                   {serf.UserEvent{Name: "drill"}, true},
		"user:drill":             {serf.UserEvent{Name: "drill"}, true},
		"user:other":             {serf.UserEvent{Name: "drill"}, false},
		"user:other,query":       {&serf.Query{Name: "queue"}, true},
		"query:why,member-join":  {&serf.Query{Name: "queue"}, false},
		"member-failed,query:qa": {&serf.Query{Name: "qa"}, true},
	} {
		list, ok := parseFilters(filters)
		if !ok {
			t.Errorf("filters %q are refused", filters)
		}
		got := false
		for _, f := range list {
			got = got || f.matches(c.event)
		}
		if got != c.want {
			t.Errorf("filters %q: %v for %s, want %v", filters, got, c.event, c.want)
		}
	}
	for _, bad := range []string{"nothing", "member-join:x", "user,,", "*:x"} {
		if _, ok := parseFilters(bad); ok {
			t.Errorf("filters %q are taken", bad)
		}
	}
}

func TestLevelsOfLines(t *testing.T) {
	for line, want := range map[string][]bool{ // by level
		"2026/01/02 [DEBUG] serf: x":     {true, true, false, false, false},
		"2026/01/02 [ERR] memberlist: x": {true, true, true, true, true},
		"no level":                       {true, true, true, true, true},
		"[no level] either":              {true, true, true, true, true},
	} {
		for least := range levels {
			if got := reaches(line, least); got != want[least] {
				t.Errorf("%q at %s: %v", line, levels[least], got)
			}
		}
	}
}
