package api

import (
	"strings"
	"testing"
)

func TestDomainsOfAGang(t *testing.T) {
	const levels = `"topology":[{"topologyKey":"block"},{"topologyKey":"rack","whenUnsatisfiable":"ScheduleAnyway"}]`
	for name, c := range map[string]struct {
		gang, more string
		want       string // "" where the job is valid
	}{
		"two levels":                     {levels, "", ""},
		"subgroups":                      {levels + `,"subgroup":{"members":4,"topologyKey":"rack"}`, "", ""},
		"minMembers of all":              {levels + `,"minMembers":8`, "", ""},
		"no key":                         {`"topology":[{}]`, "", "spec.template.spec.gangScheduling.topology[0].topologyKey: required"},
		"a bad key":                      {`"topology":[{"topologyKey":"a b"}]`, "", `spec.template.spec.gangScheduling.topology[0].topologyKey: "a b" is not a label key`},
		"a key twice":                    {`"topology":[{"topologyKey":"rack"},{"topologyKey":"rack"}]`, "", `spec.template.spec.gangScheduling.topology[1].topologyKey: "rack" is the key of an earlier level: keep one`},
		"a bad treatment":                {`"topology":[{"topologyKey":"rack","whenUnsatisfiable":"Never"}]`, "", `spec.template.spec.gangScheduling.topology[0].whenUnsatisfiable: "Never": want DoNotSchedule or ScheduleAnyway`},
		"too many levels":                {`"topology":[{"topologyKey":"a"},{"topologyKey":"b"},{"topologyKey":"c"},{"topologyKey":"d"},{"topologyKey":"e"}]`, "", "spec.template.spec.gangScheduling.topology: 5 entries, the limit is 4"},
		"a subgroup of a missing level":  {levels + `,"subgroup":{"members":4,"topologyKey":"zone"}`, "", `spec.template.spec.gangScheduling.subgroup.topologyKey: "zone" is no topologyKey of spec.template.spec.gangScheduling.topology: name the level there`},
		"a subgroup without a level":     {`"subgroup":{"members":4}`, "", "spec.template.spec.gangScheduling.subgroup.topologyKey: required"},
		"a subgroup of nobody":           {levels + `,"subgroup":{"members":0,"topologyKey":"rack"}`, "", "spec.template.spec.gangScheduling.subgroup.members: 0 is outside 1..4096"},
		"a named subgroup":               {levels + `,"subgroup":{"name":"a","topologyKey":"rack"}`, "", `spec.template.spec.gangScheduling.subgroup.name: "a": the subgroups of a Job follow from the ranks of its members`},
		"subgroups that do not come out": {levels + `,"subgroup":{"members":3,"topologyKey":"rack"}`, "", "spec.template.spec.gangScheduling.subgroup.members: 3: 8 members start together, which is no multiple of it"},
		"growth":                         {levels + `,"minMembers":4`, "", ""},
		"growth of subgroups":            {levels + `,"minMembers":3,"subgroup":{"members":3,"topologyKey":"rack"}`, "", ""},
		"a start that cuts a subgroup":   {levels + `,"minMembers":6,"subgroup":{"members":4,"topologyKey":"rack"}`, "", "spec.template.spec.gangScheduling.subgroup.members: 4: 6 members start together, which is no multiple of it"},
		"beside anti-affinity":           {levels, `,"scheduling":{"affinity":{"podAntiAffinity":{"requiredDuringScheduling":[{"topologyKey":"rack"}]}}}`, "spec.template.spec.gangScheduling.topology: 2 levels: not together with podAffinity, podAntiAffinity and topologySpreadConstraints; keep one kind of rule"},
		"beside a spread":                {levels, `,"scheduling":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"rack"}]}`, "spec.template.spec.gangScheduling.topology: 2 levels: not together with"},
	} {
		t.Run(name, func(t *testing.T) {
			j, status := DecodeJob([]byte(`{"metadata":{"name":"a"},"spec":{"parallelism":8,"template":{"spec":{"resources":{"requests":{"cpu":"1"}},"gangScheduling":{` + c.gang + `}` + c.more + `}}}}`))
			if status == nil {
				status = j.CheckDomains()
			}
			switch {
			case c.want == "" && status != nil:
				t.Errorf("it is refused: %s", status.Message)
			case c.want != "" && (status == nil || status.Code != 422 || !strings.HasPrefix(status.Message, c.want)):
				t.Errorf("%v, want 422 %s", status, c.want)
			}
		})
	}
}

func TestDomainsOfAGroup(t *testing.T) {
	const levels = `"topology":[{"topologyKey":"rack"}]`
	for name, c := range map[string]struct {
		gang, more string
		want       string // "" where the allocation is valid
	}{
		"a group":             {levels + `,"groupId":"g","minMembers":2`, "", ""},
		"no group":            {levels, "", "spec.gangScheduling.topology: 1 levels: only of allocations that start together; name groupId and minMembers, at least 2, or submit a Job"},
		"a group for rules":   {levels + `,"groupId":"g"`, "", "spec.gangScheduling.topology: 1 levels: only of allocations that start together"},
		"subgroups":           {levels + `,"groupId":"g","minMembers":2,"subgroup":{"members":2,"topologyKey":"rack"}`, "", "spec.gangScheduling.subgroup.members: 2: the allocations of a group have no ranks; give the subgroup of each in subgroup.name"},
		"a named subgroup":    {levels + `,"groupId":"g","minMembers":2,"subgroup":{"name":"a","topologyKey":"rack"}`, "", ""},
		"a bad name":          {levels + `,"groupId":"g","minMembers":2,"subgroup":{"name":"a b","topologyKey":"rack"}`, "", `spec.gangScheduling.subgroup.name: "a b" is not a name of a subgroup: `},
		"a name and members":  {levels + `,"groupId":"g","minMembers":2,"subgroup":{"name":"a","members":2,"topologyKey":"rack"}`, "", "spec.gangScheduling.subgroup.members: 2: the allocations of a group have no ranks"},
		"no name":             {levels + `,"groupId":"g","minMembers":2,"subgroup":{"topologyKey":"rack"}`, "", `spec.gangScheduling.subgroup.name: "" is not a name of a subgroup: `},
		"a name, no level":    {levels + `,"groupId":"g","minMembers":2,"subgroup":{"name":"a","topologyKey":"zone"}`, "", `spec.gangScheduling.subgroup.topologyKey: "zone" is no topologyKey of spec.gangScheduling.topology`},
		"beside a spread":     {levels + `,"groupId":"g","minMembers":2`, `,"scheduling":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"rack"}]}`, "spec.gangScheduling.topology: 1 levels: not together with"},
		"beside its affinity": {levels + `,"groupId":"g","minMembers":2`, `,"scheduling":{"affinity":{"podAffinity":{"requiredDuringScheduling":[{"topologyKey":"rack"}]}}}`, "spec.gangScheduling.topology: 1 levels: not together with"},
	} {
		t.Run(name, func(t *testing.T) {
			a, status := DecodeAllocation([]byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1"}},"gangScheduling":{` + c.gang + `}` + c.more + `}}`))
			if status == nil {
				status = a.CheckDomains()
			}
			switch {
			case c.want == "" && status != nil:
				t.Errorf("it is refused: %s", status.Message)
			case c.want != "" && (status == nil || status.Code != 422 || !strings.HasPrefix(status.Message, c.want)):
				t.Errorf("%v, want 422 %s", status, c.want)
			}
		})
	}
}

func TestReplacementsInSubgroups(t *testing.T) {
	j, status := DecodeJob([]byte(`{"metadata":{"name":"a"},"spec":{"parallelism":8,"onMemberLost":"Replace","template":{"spec":{"resources":{"requests":{"cpu":"1"}},"gangScheduling":{"topology":[{"topologyKey":"rack"}]}}}}}`))
	if status != nil {
		t.Fatal(status)
	}
	if status := j.CheckDomains(); status != nil {
		t.Errorf("domains alone: %s", status.Message)
	}
	j.Spec.Template.Spec.GangScheduling.Subgroup = &Subgroup{Members: 4, TopologyKey: "rack"}
	if status := j.CheckDomains(); status != nil {
		t.Errorf("with subgroups: %s", status.Message)
	}
}
