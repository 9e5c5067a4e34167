package api

import "slices"

// MaxPriority is the greatest priority; the least is 0.
const MaxPriority int32 = 1_000_000_000

// NamedPriority is a priority class that Muster has built in.
type NamedPriority struct {
	Name  string
	Value int32
}

var namedPriorities = [...]NamedPriority{
	{"low", 0},
	{"default", 0},
	{"normal", 0},
	{"batch-high", 200},
	{"high-priority", 1000},
	{"system-critical", 1_000_000},
}

// NamedPriorities returns the priority classes that are built in, least first. Their
// values are fixed:
//
//	low, default, normal       0, which is also the priority of work that names none
//	batch-high               200
//	high-priority           1000
//	system-critical    1,000,000
func NamedPriorities() []NamedPriority { return slices.Clone(namedPriorities[:]) }

// BuiltInPriority is the value of a priority class that is built in; false for another
// name.
func BuiltInPriority(class string) (int32, bool) {
	i := slices.IndexFunc(namedPriorities[:], func(c NamedPriority) bool { return c.Name == class })
	if i < 0 {
		return 0, false
	}
	return namedPriorities[i].Value, true
}

// PriorityOf returns the effective priority of a valid specification, 0..MaxPriority: the
// number where one is given, else the value of a class that is built in, else 0. Work of
// another class has the number of its class since its submission (Admitted).
func PriorityOf(number *int32, class string) int32 {
	if number != nil {
		return *number
	}
	value, _ := BuiltInPriority(class)
	return value
}

// checkPriority refuses a number outside of its range, and a class that is no name. The
// leader knows which classes there are.
func checkPriority(number *int32, class string) *Status {
	var faults faults
	if number != nil && (*number < 0 || *number > MaxPriority) {
		faults.add(invalid("spec.priority", "%d is outside 0..%d", *number, MaxPriority))
	}
	if class != "" && !IsSubdomain(class) {
		faults.add(invalid("spec.priorityClass", "%q is not the name of a priority class: "+subdomainRule, clip(class), 253))
	}
	return faults.status()
}

// FillPriority completes the fields of a specification that decide its priority: the number,
// the class and the preemption policy.
type FillPriority func(number **int32, class, policy *string)

// CompleteBy completes the specification.
func (s *AllocationSpec) CompleteBy(fill FillPriority) {
	fill(&s.Priority, &s.PriorityClass, &s.PreemptionPolicy)
}

// CompleteBy completes the specification. The policy is in the template.
func (s *JobSpec) CompleteBy(fill FillPriority) {
	fill(&s.Priority, &s.PriorityClass, &s.Template.Spec.PreemptionPolicy)
}
