package api

import (
	"slices"
	"strings"
)

// MaxPriority is the greatest priority; the least is 0.
const MaxPriority int32 = 1_000_000_000

// PriorityClass is a name for a priority.
type PriorityClass struct {
	Name  string
	Value int32
}

var priorityClasses = [...]PriorityClass{
	{"low", 0},
	{"default", 0},
	{"normal", 0},
	{"batch-high", 200},
	{"high-priority", 1000},
	{"system-critical", 1_000_000},
}

// PriorityClasses returns the classes, least first. This version has these
// fixed ones:
//
//	low, default, normal       0, which is also the priority of work that names none
//	batch-high               200
//	high-priority           1000
//	system-critical    1,000,000
func PriorityClasses() []PriorityClass { return slices.Clone(priorityClasses[:]) }

// PriorityOf returns the effective priority, 0..MaxPriority: the number where
// one is given, else the class's, else 0. An unknown class is refused even
// next to a number, since one of the two is then a mistake.
func PriorityOf(number *int32, class string) (int32, *Status) {
	var value int32
	if class != "" {
		i := slices.IndexFunc(priorityClasses[:], func(c PriorityClass) bool { return c.Name == class })
		if i < 0 {
			names := make([]string, 0, len(priorityClasses))
			for _, c := range priorityClasses {
				names = append(names, c.Name)
			}
			return 0, invalid("spec.priorityClass", "%q is unknown: want one of %s", clip(class), strings.Join(names, ", "))
		}
		value = priorityClasses[i].Value
	}
	if number == nil {
		return value, nil
	}
	if *number < 0 || *number > MaxPriority {
		return 0, invalid("spec.priority", "%d is outside 0..%d", *number, MaxPriority)
	}
	return *number, nil
}
