package api

import (
	"fmt"
	"slices"
)

// MaxMemberSets bounds the sets of members of a job.
const MaxMemberSets = 8

// MemberSet is members of a job that ask for the same and run the same command: its fields
// replace those of the template.
type MemberSet struct {
	// Name names the set: an RFC 1123 label. A command reads the name of the set of its
	// member in MUSTER_SET.
	Name string `json:"name" required:"true" example:"worker"`
	// Count is the number of its members.
	Count int32 `json:"count" required:"true" range:"1..4096" unit:"members" example:"4"`
	// Resources are the amounts that each member asks for. Left out, they are those of the
	// template.
	Resources *Requirements `json:"resources,omitempty"`
	// GPU restricts the devices. Left out, the restriction is that of the template's
	// scheduling.gpu; an empty one restricts nothing.
	GPU *GPUConstraint `json:"gpu,omitempty"`
	// NodeSelector is a set of labels that a node must have, all of them, at most 64.
	// Left out or empty, it is that of the template.
	NodeSelector map[string]string `json:"nodeSelector,omitempty" example:"{pool: cpu}"`
	// Command is the program that each member runs, and its first arguments, in place of
	// the template's command and args. Only where the template has a command.
	Command []string `json:"command,omitempty" example:"[python3, launch.py]"`
	// Args are further arguments, in place of the template's args.
	Args []string `json:"args,omitempty" example:"[--port, \"29500\"]"`
	// Env are variables beside those of the template; of two with the same name the one of
	// the set counts.
	Env []EnvVar `json:"env,omitempty"`
}

// hasSets reports whether the members of the job differ.
func (j *Job) hasSets() bool { return len(j.Spec.Members) > 0 }

// MemberSpecs are the specifications of the sets of members, in order: the template with
// the fields of each. A job of equal members has the template alone.
func (j *Job) MemberSpecs() []AllocationSpec {
	if !j.hasSets() {
		return []AllocationSpec{j.Spec.Template.Spec}
	}
	specs := make([]AllocationSpec, len(j.Spec.Members))
	for i := range j.Spec.Members {
		specs[i] = j.Spec.Template.Spec.ofSet(&j.Spec.Members[i])
	}
	return specs
}

// ofSet is the specification of the members of a set.
func (s AllocationSpec) ofSet(m *MemberSet) AllocationSpec {
	s = s.with(Alternative{Resources: m.Resources, GPU: m.GPU, NodeSelector: m.NodeSelector})
	if len(m.Command) > 0 {
		s.Command, s.Args = m.Command, nil
	}
	if len(m.Args) > 0 {
		s.Args = m.Args
	}
	if len(m.Env) > 0 {
		s.Env = slices.DeleteFunc(slices.Clone(s.Env), func(v EnvVar) bool {
			return slices.ContainsFunc(m.Env, func(own EnvVar) bool { return own.Name == v.Name })
		})
		s.Env = append(s.Env, m.Env...)
	}
	return s
}

// SetOf is the number of the set of a member, by its index in the job; 0 where members are
// equal.
func (j *Job) SetOf(index int) int {
	for i := range j.Spec.Members {
		if index < int(j.Spec.Members[i].Count) {
			return i
		}
		index -= int(j.Spec.Members[i].Count)
	}
	return 0
}

// SpecOf is the specification of a member, by its index in the job.
func (j *Job) SpecOf(index int) AllocationSpec {
	if !j.hasSets() {
		return j.Spec.Template.Spec
	}
	return j.Spec.Template.Spec.ofSet(&j.Spec.Members[j.SetOf(index)])
}

// countSets is the number of members in all sets.
func (j *Job) countSets() int {
	sum := 0
	for i := range j.Spec.Members {
		sum += int(j.Spec.Members[i].Count)
	}
	return sum
}

// checkSets validates the sets of members.
func checkSets(j *Job) *Status {
	const path = "spec.members"
	if !j.hasSets() {
		return nil
	}
	var faults faults
	if status := atMost(path, len(j.Spec.Members), MaxMemberSets); status != nil {
		return status
	}
	t := &j.Spec.Template.Spec
	first := map[string]int{}
	for i := range j.Spec.Members {
		m, at := &j.Spec.Members[i], fmt.Sprintf("%s[%d]", path, i)
		if !IsLabel(m.Name) {
			faults.add(invalid(at+".name", "%q is not a name of a set: %s", clip(m.Name), labelRule))
		}
		if other, twice := first[m.Name]; twice {
			faults.add(invalid(at+".name", "%q is the name of members[%d] too", clip(m.Name), other))
		} else {
			first[m.Name] = i
		}
		if m.Count < 1 || m.Count > MaxParallelism {
			faults.add(invalid(at+".count", "%d is outside 1..%d", m.Count, MaxParallelism))
		}
		spec := t.ofSet(m)
		faults.add(checkReplaced(at, "spec.template.spec", Alternative{Resources: m.Resources, GPU: m.GPU, NodeSelector: m.NodeSelector}, spec))
		if len(m.Command)+len(m.Args)+len(m.Env) == 0 {
			continue
		}
		if !t.HasWork() {
			faults.add(invalid("spec.template.spec.command", "required: %s has a command, arguments or variables of its own, in place of the template's", at))
			continue
		}
		faults.add(checkCommand(at, &spec))
	}
	if status := faults.status(); status != nil {
		return status
	}
	return checkSetCounts(j)
}

// checkSetCounts holds the number of members in the sets against the other fields that
// say how many there are, and how they start.
func checkSetCounts(j *Job) *Status {
	var faults faults
	sum := j.countSets()
	if sum > MaxParallelism {
		faults.add(invalid("spec.members", "%d members in all sets, at most %d", sum, MaxParallelism))
	}
	if p := j.Spec.Parallelism; p != nil && int(*p) != sum {
		faults.add(invalid("spec.parallelism", "%d: the sets of spec.members have %d members; leave parallelism out", *p, sum))
	}
	t := &j.Spec.Template.Spec
	if len(t.Alternatives) > 0 {
		faults.add(invalid("spec.members", "%d sets, and spec.template.spec.alternatives has %d entries: members that differ have one request each; leave one of the two out", len(j.Spec.Members), len(t.Alternatives)))
	}
	g := t.Gang()
	if g == nil {
		return faults.status()
	}
	at := gangPath("spec.template.spec", t)
	if g.MinMembers != nil && int(*g.MinMembers) != sum {
		faults.add(invalid(at+".minMembers", "%d: members that differ start together, all %d of them; leave minMembers out", *g.MinMembers, sum))
	}
	if g.Subgroup != nil {
		faults.add(invalid(at+".subgroup", "of members that differ there are no subgroups; leave subgroup or spec.members out"))
	}
	return faults.status()
}
