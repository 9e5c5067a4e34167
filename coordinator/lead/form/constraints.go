package form

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/topology"
	"github.com/musterd/muster/resource"
)

// This file translates constraints from documents and records, which are
// validated.

// Constraints takes the constraints out of a submitted scheduling section.
func Constraints(s api.Scheduling) constraint.Spec {
	spec := constraint.Spec{NodeSelector: s.NodeSelector}
	for _, o := range s.Tolerations {
		spec.Tolerations = append(spec.Tolerations, Toleration(o))
	}
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return spec
	}
	if required := s.Affinity.NodeAffinity.Required; required != nil {
		for _, t := range required.NodeSelectorTerms {
			spec.Required = append(spec.Required, termOf(t))
		}
	}
	for _, p := range s.Affinity.NodeAffinity.Preferred {
		spec.Preferred = append(spec.Preferred, constraint.Preference{Weight: p.Weight, Term: termOf(p.Preference)})
	}
	return spec
}

// withWork keeps members with a command to nodes whose agents start commands, and those with
// a root file system of their own, or with mounts, to nodes whose agents can do that.
func withWork(spec constraint.Spec, job *api.Job) constraint.Spec {
	if job == nil || !job.Spec.Template.Spec.HasWork() {
		return spec
	}
	selector := map[string]string{resource.StartsWorkLabel: resource.StartsWorkValue}
	if job.Spec.Template.Spec.HasContainer() {
		selector[resource.RunsContainersLabel] = resource.RunsContainersValue
	}
	if len(job.Spec.Template.Spec.Mounts) > 0 {
		selector[resource.MountsFoldersLabel] = resource.MountsFoldersValue
	}
	maps.Copy(selector, spec.NodeSelector) // a client that asks for the label itself has said so
	spec.NodeSelector = selector
	return spec
}

// Toleration translates a toleration.
func Toleration(o api.Toleration) constraint.Toleration {
	return constraint.Toleration{Key: o.Key, Value: o.Value, AnyValue: o.Operator == "Exists", Effect: constraint.Effect(o.Effect)}
}

// neighbourOf is a unit as rules about other units see it, and its own rules. The labels
// of an allocation are those of its document.
func neighbourOf(rec record.Unit, spec api.AllocationSpec, job *api.Job) *constraint.Subject {
	s := &constraint.Subject{Namespace: rec.Namespace, Group: "allocation/" + rec.Name, Relations: constraint.CompileRelations(relationsOf(spec.Scheduling))}
	switch {
	case job != nil:
		s.Group, s.Labels = "job/"+rec.Name, constraint.LabelsOf(Labels(job))
	case spec.Gang() != nil && spec.Gang().GroupID != "":
		s.Group = constraint.MixedGroup + spec.Gang().GroupID
	}
	return s
}

// topologyOf are the rules about domains of a gang, nil for none.
func topologyOf(spec api.AllocationSpec) *topology.Rules {
	gang := spec.Gang()
	if gang == nil || len(gang.Topology) == 0 {
		return nil
	}
	r := &topology.Rules{}
	for _, l := range gang.Topology {
		r.Levels = append(r.Levels, topology.Level{Key: l.TopologyKey, Required: l.WhenUnsatisfiable != api.ScheduleAnyway})
	}
	if s := gang.Subgroup; s != nil {
		if r.Subgroup, r.Name = int(s.Members), s.Name; s.Name != "" {
			r.Subgroup = 1 // the unit is one member
		}
		r.SubgroupLevel = slices.IndexFunc(gang.Topology, func(l api.TopologyLevel) bool { return l.TopologyKey == s.TopologyKey })
	}
	return r
}

// Labels are the labels of a job's members.
func Labels(job *api.Job) map[string]string {
	if labels := job.Spec.Template.Metadata.Labels; labels != nil {
		return labels
	}
	return job.Metadata.Labels
}

// relationsOf takes the rules about other units out of a submitted scheduling
// section.
func relationsOf(s api.Scheduling) constraint.RelationSpec {
	var spec constraint.RelationSpec
	if s.Affinity != nil {
		spec.Affinity = nearOf(s.Affinity.PodAffinity.RequiredTerms())
		spec.AntiAffinity = nearOf(s.Affinity.PodAntiAffinity.RequiredTerms())
		for _, w := range s.Affinity.PodAffinity.PreferredTerms() {
			spec.Preferred = append(spec.Preferred, constraint.WeightedNear{Weight: w.Weight, Near: oneNear(w.PodAffinityTerm)})
		}
		for _, w := range s.Affinity.PodAntiAffinity.PreferredTerms() {
			spec.Preferred = append(spec.Preferred, constraint.WeightedNear{Weight: -w.Weight, Near: oneNear(w.PodAffinityTerm)})
		}
	}
	for _, t := range s.TopologySpreadConstraints {
		spec.Spread = append(spec.Spread, constraint.Spread{
			MaxSkew: t.MaxSkew, TopologyKey: t.TopologyKey, Selector: selectorOf(t.LabelSelector), Required: t.WhenUnsatisfiable != api.ScheduleAnyway,
		})
	}
	return spec
}

func nearOf(terms []api.PodAffinityTerm) []constraint.Near {
	near := make([]constraint.Near, len(terms))
	for i, t := range terms {
		near[i] = oneNear(t)
	}
	return near
}

func oneNear(t api.PodAffinityTerm) constraint.Near {
	return constraint.Near{TopologyKey: t.TopologyKey, Selector: selectorOf(t.LabelSelector)}
}

// selectorOf is a selector of units; one that is left out selects the members of the
// same job or group.
func selectorOf(s *api.LabelSelector) constraint.Selector {
	if s == nil {
		return constraint.Selector{OwnGroup: true}
	}
	var made constraint.Selector
	for key, value := range s.MatchLabels { // Compile brings them into order
		made.Match = append(made.Match, constraint.Expression{Key: key, Operator: constraint.In, Values: []string{value}})
	}
	for _, e := range s.MatchExpressions {
		made.Match = append(made.Match, expressionOf(api.MatchExpression(e)))
	}
	return made
}

func termOf(t api.NodeSelectorTerm) constraint.Term {
	term := make(constraint.Term, len(t.MatchExpressions))
	for i, e := range t.MatchExpressions {
		term[i] = expressionOf(e)
	}
	return term
}

func expressionOf(e api.MatchExpression) constraint.Expression {
	return constraint.Expression{Key: e.Key, Operator: constraint.ParseOperator(e.Operator), Values: e.Values}
}

// Taints takes the taints out of a node's specification.
func Taints(spec record.NodeSpec) []constraint.Taint {
	taints := make([]constraint.Taint, len(spec.Taints))
	for i, t := range spec.Taints {
		taints[i] = constraint.Taint{Key: t.Key, Value: t.Value, Effect: constraint.Effect(t.Effect)}
	}
	return taints
}
