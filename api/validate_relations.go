package api

import (
	"fmt"
	"maps"
	"slices"
)

// MaxRelations is the most rules about other allocations of each kind.
const MaxRelations = 16

// checkPodAffinity validates the rules of one of the two kinds of affinity between
// allocations.
func checkPodAffinity(path string, a *PodAffinity) *Status {
	var faults faults
	required := path + ".requiredDuringScheduling"
	faults.add(atMost(required, len(a.RequiredTerms()), MaxRelations))
	for i, t := range a.RequiredTerms() {
		faults.add(checkPodAffinityTerm(fmt.Sprintf("%s[%d]", required, i), &t))
	}
	preferred := path + ".preferredDuringScheduling"
	faults.add(atMost(preferred, len(a.PreferredTerms()), MaxRelations))
	for i, w := range a.PreferredTerms() {
		at := fmt.Sprintf("%s[%d]", preferred, i)
		if w.Weight < 1 || w.Weight > 100 {
			faults.add(invalid(at+".weight", "%d is outside 1..100", w.Weight))
		}
		faults.add(checkPodAffinityTerm(at+".podAffinityTerm", &w.PodAffinityTerm))
	}
	return faults.status()
}

func checkPodAffinityTerm(path string, t *PodAffinityTerm) *Status {
	var faults faults
	faults.add(checkTopologyKey(path, t.TopologyKey))
	faults.add(checkSelector(path+".labelSelector", t.LabelSelector))
	return faults.status()
}

func checkTopologyKey(path, key string) *Status {
	switch {
	case key == "":
		return invalid(path+".topologyKey", "required: the label of nodes whose values are the domains, such as kubernetes.io/hostname")
	case !IsLabelKey(key):
		return invalid(path+".topologyKey", "%q is not a label key: %s", clip(key), labelKeyRule)
	}
	return nil
}

func checkSelector(path string, s *LabelSelector) *Status {
	var faults faults
	if s == nil {
		return nil
	}
	faults.add(checkLabels(path+".matchLabels", s.MatchLabels))
	faults.add(atMost(path+".matchExpressions", len(s.MatchExpressions), MaxTerms))
	for i, e := range s.MatchExpressions {
		at := fmt.Sprintf("%s.matchExpressions[%d]", path, i)
		switch e.Operator {
		case "Gt", "Lt", "Gte", "Lte":
			faults.add(invalid(at+".operator", "%q: labels of allocations are compared by In, NotIn, Exists or DoesNotExist", e.Operator))
		default:
			faults.add(checkExpression(at, MatchExpression(e)))
		}
	}
	return faults.status()
}

func checkSpread(path string, constraints []TopologySpreadConstraint) *Status {
	var faults faults
	faults.add(atMost(path, len(constraints), MaxRelations))
	seen := map[string]int{}
	for i, c := range constraints {
		at := fmt.Sprintf("%s[%d]", path, i)
		if c.MaxSkew < 1 {
			faults.add(invalid(at+".maxSkew", "%d is less than 1", c.MaxSkew))
		}
		faults.add(checkTopologyKey(at, c.TopologyKey))
		switch c.WhenUnsatisfiable {
		case "", DoNotSchedule, ScheduleAnyway:
		default:
			faults.add(invalid(at+".whenUnsatisfiable", "%q: want %s or %s", clip(c.WhenUnsatisfiable), DoNotSchedule, ScheduleAnyway))
		}
		faults.add(checkSelector(at+".labelSelector", c.LabelSelector))
		key := c.TopologyKey + " " + c.WhenUnsatisfiable + " " + selectorKey(c.LabelSelector)
		if first, repeated := seen[key]; repeated {
			faults.add(invalid(at, "the topologyKey, whenUnsatisfiable and labelSelector are those of %s[%d]: keep one", path, first))
			continue
		}
		seen[key] = i
	}
	return faults.status()
}

// selectorKey is equal for selectors that are written alike.
func selectorKey(s *LabelSelector) string {
	if s == nil {
		return "own"
	}
	key := fmt.Sprintf("%q", s.MatchExpressions)
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		key += fmt.Sprintf("%q=%q", k, s.MatchLabels[k])
	}
	return key
}
