package api

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/musterd/muster/resource"
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
	var faults faults
	faults.add(checkMeta("metadata", a.Metadata, MaxAllocationName))
	faults.add(checkSpec("spec", &a.Spec))
	faults.add(checkSignal("spec", &a.Spec, nil))
	faults.add(a.checkGroup())
	faults.add(checkNamed(gangPath("spec", &a.Spec), a.Spec.Gang()))
	faults.add(checkPriority(a.Spec.Priority, a.Spec.PriorityClass))
	return faults.status()
}

// Validate refuses a job as Allocation.Validate does an allocation.
func (j *Job) Validate() *Status {
	var faults faults
	faults.add(checkMeta("metadata", j.Metadata, MaxJobName))
	s := &j.Spec
	if p := s.Parallelism; p != nil && (*p < 1 || *p > MaxParallelism) {
		faults.add(invalid("spec.parallelism", "%d is outside 1..%d", *p, MaxParallelism))
	}
	sets := checkSets(j)
	if sets == nil { // else the number of members is not known
		faults.add(checkCompletions(j))
	}
	faults.add(checkWord("spec.onMemberFailure", s.OnMemberFailure, "Restart", "FailJob", "Ignore"))
	faults.add(checkWord("spec.onMemberLost", s.OnMemberLost, "Restart", "Replace"))
	if b := s.BackoffLimit; b != nil && *b < 0 {
		faults.add(invalid("spec.backoffLimit", "%d is negative", *b))
	}
	if d := s.ActiveDeadlineSeconds; d != nil && *d < 1 {
		faults.add(invalid("spec.activeDeadlineSeconds", "%d is less than 1", *d))
	}
	if s := s.TTLSecondsAfterFinished; s != nil && *s < 0 {
		faults.add(invalid("spec.ttlSecondsAfterFinished", "%d is negative", *s))
	}
	faults.add(checkDependencies(j))
	faults.add(checkPriority(s.Priority, s.PriorityClass))
	if s.Queue != "" && !IsLabel(s.Queue) {
		faults.add(invalid("spec.queue", "%q is not a queue: %s", clip(s.Queue), labelRule))
	}
	faults.add(checkTemplate(j))
	faults.add(sets)
	return faults.status()
}

// checkCompletions validates the number of members that have to succeed.
func checkCompletions(j *Job) *Status {
	c := j.Spec.Completions
	switch {
	case c == nil:
	case *c < 1 || *c > MaxParallelism:
		return invalid("spec.completions", "%d is outside 1..%d", *c, MaxParallelism)
	case j.isGang() && int(*c) != j.Members():
		return invalid("spec.completions", "%d: the members of a gang succeed together, so completions is parallelism, which is %d; leave completions out", *c, j.Members())
	}
	return nil
}

// checkTemplate validates the member's specification against its job.
func checkTemplate(j *Job) *Status {
	var faults faults
	const path = "spec.template.spec"
	t := &j.Spec.Template.Spec
	faults.add(checkMeta("spec.template.metadata", j.Spec.Template.Metadata, 0))
	if ns := j.Spec.Template.Metadata.Namespace; ns != "" {
		faults.add(invalid("spec.template.metadata.namespace", "%q: members live in the job's namespace, leave it out", ns))
	}
	switch {
	case t.Priority != nil:
		faults.add(invalid(path+".priority", "%d: members share their job's priority, set spec.priority", *t.Priority))
	case t.PriorityClass != "":
		faults.add(invalid(path+".priorityClass", "%q: members share their job's priority, set spec.priorityClass", clip(t.PriorityClass)))
	case t.Queue != "":
		faults.add(invalid(path+".queue", "%q: members share their job's queue, set spec.queue", clip(t.Queue)))
	case t.Suspend != nil:
		faults.add(invalid(path+".suspend", "%t: members are suspended with their job, set spec.suspend", *t.Suspend))
	}
	if j.hasSets() && len(t.Resources.Requests)+len(t.Resources.Limits) == 0 { // each set has its own
		faults.add(placementDetails(path+".scheduling", &t.Scheduling, &resource.Request{}))
		faults.add(checkRest(path, t))
	} else {
		faults.add(checkSpec(path, t))
	}
	faults.add(checkSignal(path, t, j.Spec.ActiveDeadlineSeconds))
	faults.add(checkConsole(path, t, j.Members()))
	faults.add(checkRanks(gangPath(path, t), t.Gang()))
	if g := t.Gang(); g != nil && g.MinMembers != nil && !j.hasSets() && int(*g.MinMembers) > j.Members() {
		faults.add(invalid(gangPath(path, t)+".minMembers", "%d is more than spec.parallelism %d", *g.MinMembers, j.Members()))
	}
	return faults.status()
}

// checkSpec validates the common fields of an allocation and a job's template.
func checkSpec(path string, s *AllocationSpec) *Status {
	var faults faults
	faults.add(statusOf(memberRequest(path, s)))
	faults.add(checkRest(path, s))
	return faults.status()
}

// checkRest is checkSpec without the request.
func checkRest(path string, s *AllocationSpec) *Status {
	var faults faults
	faults.add(checkPriorityFields(path, s))
	faults.add(checkDuration(path+".ttl", s.TTL))
	faults.add(checkGang(path, s))
	faults.add(checkQuotaDemand(path+".quota", s.Quota))
	faults.add(checkScheduling(path+".scheduling", &s.Scheduling))
	faults.add(checkWork(path, s))
	faults.add(checkAlternatives(path, s))
	return faults.status()
}

func checkPriorityFields(path string, s *AllocationSpec) *Status {
	var faults faults
	faults.add(checkWord(path+".preemptionPolicy", s.PreemptionPolicy, PreemptLowerPriority, PreemptOwnQuota, PreemptNever))
	if s.Queue != "" && !IsLabel(s.Queue) {
		faults.add(invalid(path+".queue", "%q is not a queue: %s", clip(s.Queue), labelRule))
	}
	return faults.status()
}

// gangPath names the place where the gang was written.
func gangPath(path string, s *AllocationSpec) string {
	if s.GangScheduling != nil {
		return path + ".gangScheduling"
	}
	return path + ".scheduling.gangScheduling"
}

func checkGang(path string, s *AllocationSpec) *Status {
	var faults faults
	if s.GangScheduling != nil && s.Scheduling.GangScheduling != nil {
		faults.add(invalid(path+".gangScheduling", "given here and as scheduling.gangScheduling: keep one"))
	}
	g := s.Gang()
	if g == nil {
		return faults.status()
	}
	path = gangPath(path, s)
	if m := g.MinMembers; m != nil && (*m < 1 || *m > MaxParallelism) {
		faults.add(invalid(path+".minMembers", "%d is outside 1..%d", *m, MaxParallelism))
	}
	if g.GroupID != "" && !IsSubdomain(g.GroupID) {
		faults.add(invalid(path+".groupId", "%q is not a name: "+subdomainRule, clip(g.GroupID), 253))
	}
	faults.add(checkDuration(path+".timeout", g.Timeout))
	faults.add(checkTopology(path, g))
	return faults.status()
}

func checkScheduling(path string, s *Scheduling) *Status {
	var faults faults
	faults.add(checkLabels(path+".nodeSelector", s.NodeSelector))
	faults.add(checkSpread(path+".topologySpreadConstraints", s.TopologySpreadConstraints))
	faults.add(atMost(path+".tolerations", len(s.Tolerations), MaxTolerations))
	for i, t := range s.Tolerations {
		faults.add(checkToleration(fmt.Sprintf("%s.tolerations[%d]", path, i), t))
	}
	if s.Affinity == nil {
		return faults.status()
	}
	faults.add(checkPodAffinity(path+".affinity.podAffinity", s.Affinity.PodAffinity))
	faults.add(checkPodAffinity(path+".affinity.podAntiAffinity", s.Affinity.PodAntiAffinity))
	if s.Affinity.NodeAffinity == nil {
		return faults.status()
	}
	faults.add(checkNodeAffinity(path+".affinity.nodeAffinity", s.Affinity.NodeAffinity))
	return faults.status()
}

func checkToleration(path string, t Toleration) *Status {
	var faults faults
	switch t.Operator {
	case "", "Equal":
		if t.Key == "" {
			faults.add(invalid(path+".key", "required unless the operator is Exists"))
		}
	case "Exists":
		if t.Value != "" {
			faults.add(invalid(path+".value", "%q: the operator Exists takes no value", clip(t.Value)))
		}
	default:
		faults.add(invalid(path+".operator", "%q: want Equal or Exists", clip(t.Operator)))
	}
	if t.Key != "" && !IsLabelKey(t.Key) {
		faults.add(invalid(path+".key", "%q is not a taint key: %s", clip(t.Key), labelKeyRule))
	}
	if !IsLabelValue(t.Value) {
		faults.add(invalid(path+".value", "%q is not a taint value: %s", clip(t.Value), labelValueRule))
	}
	if s := t.TolerationSeconds; s != nil && (*s < 0 || *s > MaxTolerationSeconds) {
		faults.add(invalid(path+".tolerationSeconds", "%d is outside 0..%d", *s, MaxTolerationSeconds))
	}
	switch t.Effect {
	case "", "NoSchedule", "PreferNoSchedule":
		if s := t.TolerationSeconds; s != nil {
			faults.add(invalid(path+".tolerationSeconds", "%d: only with the effect NoExecute, and the effect is %q", *s, t.Effect))
		}
		return faults.status()
	case "NoExecute":
		return faults.status()
	}
	faults.add(invalid(path+".effect", "%q: want NoSchedule, PreferNoSchedule or NoExecute", clip(t.Effect)))
	return faults.status()
}

func checkNodeAffinity(path string, a *NodeAffinity) *Status {
	var faults faults
	if r := a.Required; r != nil {
		if len(r.NodeSelectorTerms) == 0 {
			faults.add(invalid(path+".requiredDuringScheduling.nodeSelectorTerms", "empty: no node could ever match"))
		}
		faults.add(atMost(path+".requiredDuringScheduling.nodeSelectorTerms", len(r.NodeSelectorTerms), MaxTerms))
		for i, t := range r.NodeSelectorTerms {
			faults.add(checkTerm(fmt.Sprintf("%s.requiredDuringScheduling.nodeSelectorTerms[%d]", path, i), t))
		}
	}
	faults.add(atMost(path+".preferredDuringScheduling", len(a.Preferred), MaxTerms))
	for i, p := range a.Preferred {
		at := fmt.Sprintf("%s.preferredDuringScheduling[%d]", path, i)
		if p.Weight < 1 || p.Weight > 100 {
			faults.add(invalid(at+".weight", "%d is outside 1..100", p.Weight))
		}
		faults.add(checkTerm(at+".preference", p.Preference))
	}
	return faults.status()
}

func checkTerm(path string, t NodeSelectorTerm) *Status {
	var faults faults
	if len(t.MatchExpressions) == 0 {
		faults.add(invalid(path+".matchExpressions", "empty: no node could ever match"))
	}
	faults.add(atMost(path+".matchExpressions", len(t.MatchExpressions), MaxTerms))
	for i, e := range t.MatchExpressions {
		faults.add(checkExpression(fmt.Sprintf("%s.matchExpressions[%d]", path, i), e))
	}
	return faults.status()
}

func checkExpression(path string, e MatchExpression) *Status {
	var faults faults
	if !IsLabelKey(e.Key) {
		faults.add(invalid(path+".key", "%q is not a label key: %s", clip(e.Key), labelKeyRule))
	}
	faults.add(atMost(path+".values", len(e.Values), MaxValues))
	switch e.Operator {
	case "In", "NotIn":
		if len(e.Values) == 0 {
			faults.add(invalid(path+".values", "empty: the operator %s needs at least one", e.Operator))
		}
		if i := slices.IndexFunc(e.Values, func(v string) bool { return !IsLabelValue(v) }); i >= 0 {
			faults.add(invalid(fmt.Sprintf("%s.values[%d]", path, i), "%q is not a label value: %s", clip(e.Values[i]), labelValueRule))
		}
	case "Exists", "DoesNotExist":
		if len(e.Values) > 0 {
			faults.add(invalid(path+".values", "%q: the operator %s takes no values", clip(e.Values[0]), e.Operator))
		}
	case "Gt", "Lt", "Gte", "Lte":
		if len(e.Values) != 1 {
			faults.add(invalid(path+".values", "%d values: the operator %s takes exactly one whole number", len(e.Values), e.Operator))
			break
		}
		if _, err := strconv.ParseInt(e.Values[0], 10, 64); err != nil {
			faults.add(invalid(path+".values[0]", "%q: the operator %s compares whole numbers", clip(e.Values[0]), e.Operator))
		}
	default:
		faults.add(invalid(path+".operator", "%q: want In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte", clip(e.Operator)))
	}
	return faults.status()
}
