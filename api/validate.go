package api

import (
	"fmt"
	"slices"
	"strconv"
)

// The longest names. A job leaves room for the numbers of its members.
const (
	MaxAllocationName = 253
	MaxJobName        = 248
	MaxParallelism    = 4096
)

// Validate refuses an allocation that contradicts itself or that no cluster
// could ever satisfy, with 422, the field and the value.
func (a *Allocation) Validate() *Status {
	if status := checkMeta("metadata", a.Metadata, MaxAllocationName); status != nil {
		return status
	}
	if status := checkSpec("spec", &a.Spec); status != nil {
		return status
	}
	if g := a.Spec.Gang(); g != nil && g.MinMembers != nil && *g.MinMembers > 1 {
		return invalid(gangPath("spec", &a.Spec)+".minMembers",
			"%d: an Allocation is one member; submit a Job with spec.parallelism %d for a gang", *g.MinMembers, *g.MinMembers)
	}
	_, status := PriorityOf(a.Spec.Priority, a.Spec.PriorityClass)
	return status
}

// Validate refuses a job as Allocation.Validate does an allocation.
func (j *Job) Validate() *Status {
	if status := checkMeta("metadata", j.Metadata, MaxJobName); status != nil {
		return status
	}
	s := &j.Spec
	if p := s.Parallelism; p != nil && (*p < 1 || *p > MaxParallelism) {
		return invalid("spec.parallelism", "%d is outside 1..%d", *p, MaxParallelism)
	}
	if c := s.Completions; c != nil && *c < 1 {
		return invalid("spec.completions", "%d is less than 1", *c)
	}
	if b := s.BackoffLimit; b != nil && *b < 0 {
		return invalid("spec.backoffLimit", "%d is negative", *b)
	}
	if d := s.ActiveDeadlineSeconds; d != nil && *d < 1 {
		return invalid("spec.activeDeadlineSeconds", "%d is less than 1", *d)
	}
	if _, status := PriorityOf(s.Priority, s.PriorityClass); status != nil {
		return status
	}
	if s.Queue != "" && !IsLabel(s.Queue) {
		return invalid("spec.queue", "%q is not a queue: %s", clip(s.Queue), labelRule)
	}
	return checkTemplate(j)
}

// checkTemplate validates the member's specification against its job.
func checkTemplate(j *Job) *Status {
	const path = "spec.template.spec"
	t := &j.Spec.Template.Spec
	if status := checkMeta("spec.template.metadata", j.Spec.Template.Metadata, 0); status != nil {
		return status
	}
	if ns := j.Spec.Template.Metadata.Namespace; ns != "" {
		return invalid("spec.template.metadata.namespace", "%q: members live in the job's namespace, leave it out", ns)
	}
	switch {
	case t.Priority != nil:
		return invalid(path+".priority", "%d: members share their job's priority, set spec.priority", *t.Priority)
	case t.PriorityClass != "":
		return invalid(path+".priorityClass", "%q: members share their job's priority, set spec.priorityClass", clip(t.PriorityClass))
	case t.Queue != "":
		return invalid(path+".queue", "%q: members share their job's queue, set spec.queue", clip(t.Queue))
	case t.Suspend != nil:
		return invalid(path+".suspend", "%t: members are suspended with their job, set spec.suspend", *t.Suspend)
	}
	if status := checkSpec(path, t); status != nil {
		return status
	}
	if g := t.Gang(); g != nil && g.MinMembers != nil && int(*g.MinMembers) > j.Members() {
		return invalid(gangPath(path, t)+".minMembers", "%d is more than spec.parallelism %d", *g.MinMembers, j.Members())
	}
	return nil
}

// checkSpec validates the common fields of an allocation and a job's template.
func checkSpec(path string, s *AllocationSpec) *Status {
	if _, status := memberRequest(path, s); status != nil {
		return status
	}
	if status := checkPriorityFields(path, s); status != nil {
		return status
	}
	if status := checkDuration(path+".ttl", s.TTL); status != nil {
		return status
	}
	if status := checkGang(path, s); status != nil {
		return status
	}
	if status := checkQuotaDemand(path+".quota", s.Quota); status != nil {
		return status
	}
	return checkScheduling(path+".scheduling", &s.Scheduling)
}

func checkPriorityFields(path string, s *AllocationSpec) *Status {
	switch s.PreemptionPolicy {
	case "", "PreemptLowerPriority", "Never":
	default:
		return invalid(path+".preemptionPolicy", "%q: want PreemptLowerPriority or Never", clip(s.PreemptionPolicy))
	}
	if s.Queue != "" && !IsLabel(s.Queue) {
		return invalid(path+".queue", "%q is not a queue: %s", clip(s.Queue), labelRule)
	}
	return nil
}

// gangPath names the place where the gang was written.
func gangPath(path string, s *AllocationSpec) string {
	if s.GangScheduling != nil {
		return path + ".gangScheduling"
	}
	return path + ".scheduling.gangScheduling"
}

func checkGang(path string, s *AllocationSpec) *Status {
	if s.GangScheduling != nil && s.Scheduling.GangScheduling != nil {
		return invalid(path+".gangScheduling", "given here and as scheduling.gangScheduling: keep one")
	}
	g := s.Gang()
	if g == nil {
		return nil
	}
	path = gangPath(path, s)
	if g.MinMembers != nil && *g.MinMembers < 1 {
		return invalid(path+".minMembers", "%d is less than 1", *g.MinMembers)
	}
	if g.GroupID != "" && !IsSubdomain(g.GroupID) {
		return invalid(path+".groupId", "%q is not a name: "+subdomainRule, clip(g.GroupID), 253)
	}
	return checkDuration(path+".timeout", g.Timeout)
}

func checkScheduling(path string, s *Scheduling) *Status {
	if status := checkLabels(path+".nodeSelector", s.NodeSelector); status != nil {
		return status
	}
	if len(s.TopologySpreadConstraints) > 0 {
		return invalid(path+".topologySpreadConstraints", "not supported by this version: remove it")
	}
	if status := atMost(path+".tolerations", len(s.Tolerations), MaxTolerations); status != nil {
		return status
	}
	for i, t := range s.Tolerations {
		if status := checkToleration(fmt.Sprintf("%s.tolerations[%d]", path, i), t); status != nil {
			return status
		}
	}
	if s.Affinity == nil {
		return nil
	}
	if s.Affinity.PodAntiAffinity != nil {
		return invalid(path+".affinity.podAntiAffinity", "not supported by this version: remove it")
	}
	if s.Affinity.NodeAffinity == nil {
		return nil
	}
	return checkNodeAffinity(path+".affinity.nodeAffinity", s.Affinity.NodeAffinity)
}

func checkToleration(path string, t Toleration) *Status {
	switch t.Operator {
	case "", "Equal":
		if t.Key == "" {
			return invalid(path+".key", "required unless the operator is Exists")
		}
	case "Exists":
		if t.Value != "" {
			return invalid(path+".value", "%q: the operator Exists takes no value", clip(t.Value))
		}
	default:
		return invalid(path+".operator", "%q: want Equal or Exists", clip(t.Operator))
	}
	if t.Key != "" && !IsLabelKey(t.Key) {
		return invalid(path+".key", "%q is not a taint key: %s", clip(t.Key), labelKeyRule)
	}
	if !IsLabelValue(t.Value) {
		return invalid(path+".value", "%q is not a taint value: %s", clip(t.Value), labelValueRule)
	}
	switch t.Effect {
	case "", "NoSchedule", "PreferNoSchedule", "NoExecute":
		return nil
	}
	return invalid(path+".effect", "%q: want NoSchedule, PreferNoSchedule or NoExecute", clip(t.Effect))
}

func checkNodeAffinity(path string, a *NodeAffinity) *Status {
	if r := a.Required; r != nil {
		if len(r.NodeSelectorTerms) == 0 {
			return invalid(path+".requiredDuringScheduling.nodeSelectorTerms", "empty: no node could ever match")
		}
		if status := atMost(path+".requiredDuringScheduling.nodeSelectorTerms", len(r.NodeSelectorTerms), MaxTerms); status != nil {
			return status
		}
		for i, t := range r.NodeSelectorTerms {
			if status := checkTerm(fmt.Sprintf("%s.requiredDuringScheduling.nodeSelectorTerms[%d]", path, i), t); status != nil {
				return status
			}
		}
	}
	if status := atMost(path+".preferredDuringScheduling", len(a.Preferred), MaxTerms); status != nil {
		return status
	}
	for i, p := range a.Preferred {
		at := fmt.Sprintf("%s.preferredDuringScheduling[%d]", path, i)
		if p.Weight < 1 || p.Weight > 100 {
			return invalid(at+".weight", "%d is outside 1..100", p.Weight)
		}
		if status := checkTerm(at+".preference", p.Preference); status != nil {
			return status
		}
	}
	return nil
}

func checkTerm(path string, t NodeSelectorTerm) *Status {
	if len(t.MatchExpressions) == 0 {
		return invalid(path+".matchExpressions", "empty: no node could ever match")
	}
	if status := atMost(path+".matchExpressions", len(t.MatchExpressions), MaxTerms); status != nil {
		return status
	}
	for i, e := range t.MatchExpressions {
		if status := checkExpression(fmt.Sprintf("%s.matchExpressions[%d]", path, i), e); status != nil {
			return status
		}
	}
	return nil
}

func checkExpression(path string, e MatchExpression) *Status {
	if !IsLabelKey(e.Key) {
		return invalid(path+".key", "%q is not a label key: %s", clip(e.Key), labelKeyRule)
	}
	if status := atMost(path+".values", len(e.Values), MaxValues); status != nil {
		return status
	}
	switch e.Operator {
	case "In", "NotIn":
		if len(e.Values) == 0 {
			return invalid(path+".values", "empty: the operator %s needs at least one", e.Operator)
		}
		if i := slices.IndexFunc(e.Values, func(v string) bool { return !IsLabelValue(v) }); i >= 0 {
			return invalid(fmt.Sprintf("%s.values[%d]", path, i), "%q is not a label value: %s", clip(e.Values[i]), labelValueRule)
		}
	case "Exists", "DoesNotExist":
		if len(e.Values) > 0 {
			return invalid(path+".values", "%q: the operator %s takes no values", clip(e.Values[0]), e.Operator)
		}
	case "Gt", "Lt", "Gte", "Lte":
		if len(e.Values) != 1 {
			return invalid(path+".values", "%d values: the operator %s takes exactly one whole number", len(e.Values), e.Operator)
		}
		if _, err := strconv.ParseInt(e.Values[0], 10, 64); err != nil {
			return invalid(path+".values[0]", "%q: the operator %s compares whole numbers", clip(e.Values[0]), e.Operator)
		}
	default:
		return invalid(path+".operator", "%q: want In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte", clip(e.Operator))
	}
	return nil
}
