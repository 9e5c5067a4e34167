package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
)

func TestTheGroupOfAnAllocation(t *testing.T) {
	allocation := func(annotations, spec string) string {
		return `{"metadata":{"name":"a","annotations":{` + annotations + `}},"spec":{"resources":{"requests":{"cpu":"1"}}` + spec + `}}`
	}
	cases := map[string]struct {
		document string
		want     api.Group
		gang     bool
	}{
		"none":                       {allocation("", ""), api.Group{MinMembers: 1, Levels: "none"}, false},
		"a name alone, for rules":    {allocation("", `,"gangScheduling":{"groupId":"g"}`), api.Group{ID: "g", MinMembers: 1, Levels: "none"}, false},
		"a time alone":               {allocation(`"muster.io/max-wait":"1m"`, ""), api.Group{MinMembers: 1, MaxWait: time.Minute, Levels: "none"}, false},
		"a gang":                     {allocation("", `,"scheduling":{"gangScheduling":{"groupId":"g","minMembers":4,"timeout":"300s"}}`), api.Group{"g", 4, 5 * time.Minute, "none"}, true},
		"annotations in their place": {allocation(`"scheduler.example.com/gang-size":"4","scheduler.example.com/max-wait":"300s"`, `,"gangScheduling":{"groupId":"g"}`), api.Group{"g", 4, 5 * time.Minute, "none"}, true},
		"annotations that agree": {
			allocation(`"scheduler.example.com/gang-size":"4","scheduler.example.com/max-wait":"5m"`, `,"gangScheduling":{"groupId":"g","minMembers":4,"timeout":"300s"}`),
			api.Group{"g", 4, 5 * time.Minute, "none"}, true,
		},
		"levels of domains": {
			allocation("", `,"gangScheduling":{"groupId":"g","minMembers":2,"topology":[{"topologyKey":"block"},{"topologyKey":"rack","whenUnsatisfiable":"ScheduleAnyway"}]}`),
			api.Group{"g", 2, 0, "block, rack (ScheduleAnyway)"}, true,
		},
		"an annotation of somebody else": {allocation(`"example.org/gang-size":"many"`, ""), api.Group{MinMembers: 1, Levels: "none"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, status := api.DecodeAllocation([]byte(tc.document))
			if status != nil {
				t.Fatal(status)
			}
			if got := a.Group(); got != tc.want || got.IsGang() != tc.gang {
				t.Errorf("%+v, a gang: %t; want %+v, %t", got, got.IsGang(), tc.want, tc.gang)
			}
		})
	}
}

// TestAPatchKeepsTheGroup: annotations that mean fields of the gang are fixed.
func TestAPatchKeepsTheGroup(t *testing.T) {
	document := []byte(`{"metadata":{"name":"a","annotations":{"scheduler.example.com/gang-size":"2"}},"spec":{"resources":{"requests":{"cpu":"1"}},"gangScheduling":{"groupId":"g"}}}`)
	current, status := api.DecodeAllocation(document)
	if status != nil {
		t.Fatal(status)
	}
	for patch, fine := range map[string]bool{
		`{"metadata":{"annotations":{"scheduler.example.com/gang-size":"3"}}}`:  false,
		`{"metadata":{"annotations":{"scheduler.example.com/gang-size":null}}}`: false,
		`{"metadata":{"annotations":{"scheduler.example.com/max-wait":"9s"}}}`:  false,
		`{"metadata":{"annotations":{"muster.io/gang-size":"2"}}}`:              true,
		`{"metadata":{"annotations":{"note":"x"}}}`:                             true,
	} {
		p, status := api.DecodeWorkPatch(api.KindAllocation, "default", "a", []byte(patch))
		if status != nil {
			t.Fatal(status)
		}
		_, _, status = p.PatchedAllocation(document, current, func(**int32, *string, *string) {})
		if fine != (status == nil) {
			t.Errorf("%s: %v", patch, status)
		}
		if status != nil && !strings.Contains(status.Message, "gang-size") {
			t.Errorf("%s: %s does not say why", patch, status.Message)
		}
	}
}
