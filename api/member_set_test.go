package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// jobOf reads a job whose spec is given, with members that differ.
func jobOf(spec string) (*Job, *Status) {
	return DecodeJob([]byte(`{"kind":"Job","metadata":{"name":"train"},"spec":{` + spec + `}}`))
}

const (
	templateOfCPUs = `"template":{"spec":{"resources":{"requests":{"cpu":"4"}}}}`
	twoSets        = `"members":[{"name":"launcher","count":1},{"name":"worker","count":4,"resources":{"requests":{"nvidia.com/gpu":"8","cpu":"32"}}}]`
)

func TestMembersThatDiffer(t *testing.T) {
	j, status := jobOf(twoSets + `,"template":{"spec":{"resources":{"requests":{"cpu":"4"}},"command":["train"],"args":["-v"],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}}`)
	if status != nil {
		t.Fatal(status)
	}
	first, growth, gang := JobUnits(j)
	if got := fmt.Sprint(j.Members(), first, growth, gang, j.SetOf(0), j.SetOf(1), j.SetOf(4)); got != "5 5 0 true 0 1 1" {
		t.Error(got)
	}
	j.Spec.Members[1].Args, j.Spec.Members[1].Env = []string{"-q"}, []EnvVar{{"B", "3"}}
	j.Spec.Members[0].Command = []string{"launch"}
	launcher, worker := j.SpecOf(0), j.SpecOf(3)
	got := fmt.Sprint(launcher.Command, launcher.Args, launcher.Env, launcher.Resources.Requests, worker.Command, worker.Args, worker.Env, worker.Resources.Requests)
	if want := "[launch] [] [{A 1} {B 2}] map[cpu:4] [train] [-q] [{A 1} {B 3}] map[cpu:32 nvidia.com/gpu:8]"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if len(j.MemberSpecs()) != 2 {
		t.Errorf("%d specifications", len(j.MemberSpecs()))
	}
}

func TestMembersThatDifferAreRefused(t *testing.T) {
	gang := func(fields string) string {
		return twoSets + `,"template":{"spec":{"resources":{"requests":{"cpu":"4"}},"gangScheduling":{` + fields + `}}}`
	}
	sets := func(list string) string { return `"members":[` + list + `],` + templateOfCPUs }
	for name, c := range map[string]struct{ spec, want string }{
		"good":                              {twoSets + "," + templateOfCPUs, ""},
		"each set has its resources":        {`"members":[{"name":"a","count":1,"resources":{"requests":{"cpu":"1"}}}],"template":{"spec":{}}`, ""},
		"counts that agree":                 {`"parallelism":5,"completions":5,` + gang(`"minMembers":5,"topology":[{"topologyKey":"rack"}]`), ""},
		"another parallelism":               {`"parallelism":4,` + twoSets + "," + templateOfCPUs, "spec.parallelism: 4: the sets of spec.members have 5 members; leave parallelism out"},
		"other completions":                 {`"completions":4,` + twoSets + "," + templateOfCPUs, "spec.completions: 4: the members of a gang succeed together, so completions is parallelism, which is 5; leave completions out"},
		"lost members are replaced":         {`"onMemberLost":"Replace",` + twoSets + "," + templateOfCPUs, ""},
		"a smaller minimum":                 {gang(`"minMembers":4`), "spec.template.spec.gangScheduling.minMembers: 4: members that differ start together, all 5 of them; leave minMembers out"},
		"subgroups":                         {gang(`"topology":[{"topologyKey":"rack"}],"subgroup":{"members":5,"topologyKey":"rack"}`), "spec.template.spec.gangScheduling.subgroup: of members that differ there are no subgroups; leave subgroup or spec.members out"},
		"alternatives":                      {twoSets + `,"template":{"spec":{"resources":{"requests":{"cpu":"4"}},"alternatives":[{"nodeSelector":{"a":"b"}}]}}`, "spec.members: 2 sets, and spec.template.spec.alternatives has 1 entries: members that differ have one request each; leave one of the two out"},
		"no count":                          {sets(`{"name":"a"}`), "spec.members[0].count: 0 is outside 1..4096"},
		"too many members":                  {sets(`{"name":"a","count":4096},{"name":"b","count":1}`), "spec.members: 4097 members in all sets, at most 4096"},
		"too many sets":                     {sets(strings.Repeat(`{"name":"a","count":1},`, 8) + `{"name":"a","count":1}`), "spec.members: 9 entries, the limit is 8"},
		"no name":                           {sets(`{"count":1}`), `spec.members[0].name: "" is not a name of a set: ` + labelRule},
		"a name twice":                      {sets(`{"name":"a","count":1},{"name":"a","count":1}`), `spec.members[1].name: "a" is the name of members[0] too`},
		"nothing is asked for":              {`"members":[{"name":"a","count":1}],"template":{"spec":{}}`, "spec.members[0].resources.requests: nothing is requested"},
		"an amount that is none":            {sets(`{"name":"a","count":1,"resources":{"requests":{"cpu":"many"}}}`), `spec.members[0].resources.requests.cpu: quantity "many"`},
		"a command, the template has none":  {sets(`{"name":"a","count":1,"command":["x"]}`), "spec.template.spec.command: required: spec.members[0] has a command, arguments or variables of its own, in place of the template's"},
		"a variable that Muster sets":       {`"members":[{"name":"a","count":1,"env":[{"name":"MUSTER_SET","value":"x"}]}],"template":{"spec":{"resources":{"requests":{"cpu":"4"}},"command":["x"]}}`, `spec.members[0].env[0].name: "MUSTER_SET" is set by Muster: leave it out`},
		"a model without GPUs":              {`"members":[{"name":"a","count":1}],"template":{"spec":{"resources":{"requests":{"cpu":"4"}},"scheduling":{"gpu":{"model":"X"}}}}`, "spec.template.spec.resources.requests: "},
		"the template's own fault is named": {`"members":[{"name":"a","count":1,"resources":{"requests":{"cpu":"1"}}}],"template":{"spec":{"scheduling":{"numaPolicy":"odd"}}}`, `spec.template.spec.scheduling.numaPolicy: "odd"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, status := jobOf(c.spec)
			switch {
			case c.want == "" && status != nil:
				t.Error(status.Message)
			case c.want != "" && (status == nil || !strings.Contains(status.Message, c.want)):
				t.Errorf("%+v, want %s", status, c.want)
			}
		})
	}
}

// TestMembersThatDifferAreFixed: no patch changes the sets or their number.
func TestMembersThatDifferAreFixed(t *testing.T) {
	j, status := jobOf(twoSets + "," + templateOfCPUs)
	if status != nil {
		t.Fatal(status)
	}
	changed := *j
	changed.Spec.Members = append([]MemberSet{}, j.Spec.Members...)
	changed.Spec.Members[1].Count = 5
	status = checkFixed("job", j.Spec, changed.Spec)
	if status == nil || !strings.HasPrefix(status.Message, "spec.members: ") {
		t.Errorf("%+v", status)
	}
	if diff := cmp.Diff(4, int(j.Spec.Members[1].Count)); diff != "" {
		t.Error(diff)
	}
}
