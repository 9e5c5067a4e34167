package api

import (
	"fmt"
	"strings"
)

// MaxTopologyLevels bounds the levels of domains of a gang.
const MaxTopologyLevels = 4

// checkTopology validates the levels of domains of a gang, at path.
func checkTopology(path string, g *GangScheduling) *Status {
	var faults faults
	faults.add(atMost(path+".topology", len(g.Topology), MaxTopologyLevels))
	known := map[string]bool{}
	for i, l := range g.Topology {
		at := fmt.Sprintf("%s.topology[%d]", path, i)
		faults.add(checkTopologyKey(at, l.TopologyKey))
		if known[l.TopologyKey] {
			faults.add(invalid(at+".topologyKey", "%q is the key of an earlier level: keep one", clip(l.TopologyKey)))
		}
		known[l.TopologyKey] = true
		faults.add(checkWord(at+".whenUnsatisfiable", l.WhenUnsatisfiable, DoNotSchedule, ScheduleAnyway))
	}
	s := g.Subgroup
	if s == nil {
		return faults.status()
	}
	at := path + ".subgroup"
	switch {
	case s.TopologyKey == "":
		faults.add(checkTopologyKey(at, s.TopologyKey))
	case !known[s.TopologyKey]:
		faults.add(invalid(at+".topologyKey", "%q is no topologyKey of %s.topology: name the level there", clip(s.TopologyKey), path))
	}
	return faults.status()
}

// checkRanks validates the subgroups of a job, at path: they follow from the ranks.
func checkRanks(path string, g *GangScheduling) *Status {
	if g == nil || g.Subgroup == nil {
		return nil
	}
	s, at := g.Subgroup, path+".subgroup"
	switch {
	case s.Name != "":
		return invalid(at+".name", "%q: the subgroups of a Job follow from the ranks of its members; give subgroup.members in place of the name", clip(s.Name))
	case s.Members < 1 || s.Members > MaxParallelism:
		return invalid(at+".members", "%d is outside 1..%d", s.Members, MaxParallelism)
	}
	return nil
}

// checkNamed validates the subgroup of an allocation, at path: it has a name.
func checkNamed(path string, g *GangScheduling) *Status {
	if g == nil || g.Subgroup == nil {
		return nil
	}
	s, at := g.Subgroup, path+".subgroup"
	switch {
	case s.Members != 0:
		return invalid(at+".members", "%d: the allocations of a group have no ranks; give the subgroup of each in subgroup.name", s.Members)
	case !IsLabel(s.Name):
		return invalid(at+".name", "%q is not a name of a subgroup: %s", clip(s.Name), labelRule)
	}
	return nil
}

// CheckDomains refuses a job whose rules about domains do not go with its number of
// members, or with its other rules: 422 with the field and both values. It is asked of
// valid jobs.
func (j *Job) CheckDomains() *Status {
	const path = "spec.template.spec"
	t := &j.Spec.Template.Spec
	g := t.Gang()
	if g == nil || len(g.Topology) == 0 {
		return nil
	}
	at := gangPath(path, t)
	first, _, _ := JobUnits(j)
	if s := g.Subgroup; s != nil && first%int(s.Members) != 0 {
		return invalid(at+".subgroup.members", "%d: %d members start together, which is no multiple of it", s.Members, first)
	}
	return checkDomainsBeside(at, t)
}

// CheckDomains refuses an allocation whose rules about domains are not those of a group,
// or do not go with its other rules: 422 with the field. It is asked of valid allocations.
func (a *Allocation) CheckDomains() *Status {
	g := a.Spec.Gang()
	if g == nil || len(g.Topology) == 0 {
		return nil
	}
	at := gangPath("spec", &a.Spec)
	if !a.Group().IsGang() {
		return invalid(at+".topology", "%d levels: only of allocations that start together; name groupId and minMembers, at least 2, or submit a Job", len(g.Topology))
	}
	return checkDomainsBeside(at, &a.Spec)
}

// checkDomainsBeside refuses rules about other work beside those about domains, at the path
// of the gang.
func checkDomainsBeside(at string, s *AllocationSpec) *Status {
	if len(s.Scheduling.TopologySpreadConstraints) > 0 || s.Scheduling.Affinity != nil && (s.Scheduling.Affinity.PodAffinity != nil || s.Scheduling.Affinity.PodAntiAffinity != nil) {
		return invalid(at+".topology", "%d levels: not together with podAffinity, podAntiAffinity and topologySpreadConstraints; keep one kind of rule", len(s.Gang().Topology))
	}
	return nil
}

// levelsText are the levels as text, which is equal for equal levels; "none" for none.
func levelsText(levels []TopologyLevel) string {
	if len(levels) == 0 {
		return "none"
	}
	words := make([]string, len(levels))
	for i, l := range levels {
		if words[i] = l.TopologyKey; l.WhenUnsatisfiable == ScheduleAnyway {
			words[i] += " (" + ScheduleAnyway + ")"
		}
	}
	return strings.Join(words, ", ")
}
