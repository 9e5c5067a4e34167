package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// amount prints an amount of a resource as a person says it: "2 GPUs", "500m of a
// GPU", "8 CPUs", "512Mi of memory".
func amount(name resource.Name, v int64) string {
	text := resource.FormatAmount(name, v)
	switch {
	case name == resource.GPU && v > 0 && v < int64(resource.WholeDevice):
		return text + " of a GPU"
	case name == resource.GPU:
		return plural(text, "GPU")
	case name == resource.CPU && v > 0 && v < int64(resource.WholeCPU):
		return text + " of a CPU"
	case name == resource.CPU:
		return plural(text, "CPU")
	case name == resource.Cores:
		return plural(text, "whole core")
	case name == resource.Memory:
		return text + " of memory"
	case name == resource.EphemeralStorage:
		return text + " of storage"
	case name == resource.Pods:
		return plural(text, "member")
	}
	return text + " " + string(name)
}

// plural is a number of things.
func plural(n, thing string) string {
	if n == "1" {
		return n + " " + thing
	}
	return n + " " + thing + "s"
}

func count(n int, thing string) string { return plural(fmt.Sprint(n), thing) }

// verb agrees with a count.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// request prints a request, devices first.
func request(r *resource.Request) string {
	v := r.Vector()
	if r.Cores > 0 {
		delete(v, resource.CPU) // charged, not asked for
	}
	var parts []string
	for _, name := range []resource.Name{
		resource.GPU, resource.MIG(r.MIGProfile), resource.Cores, resource.CPU, resource.Memory, resource.Hugepages(r.HugepageSize),
	} {
		if v[name] > 0 {
			parts = append(parts, amount(name, v[name]))
		}
	}
	for name, n := range r.Counts.All() {
		parts = append(parts, amount(name, n))
	}
	return join(parts, "and")
}

// join lists parts in a sentence.
func join(parts []string, word string) string {
	switch len(parts) {
	case 0:
		return ""
	case 1:
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " " + word + " " + parts[len(parts)-1]
}

// listed is the most names in one sentence.
const listed = 3

// names lists names: the first of many, and how many more there are.
func names[T ~string](all []T) string {
	shown := all[:min(listed, len(all))]
	parts := make([]string, len(shown))
	for i, n := range shown {
		parts[i] = string(n)
	}
	text := strings.Join(parts, ", ")
	if more := len(all) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Work mentions units: by name those that the viewer may see, the others by their
// number, GPUs and priorities.
func (v Viewer) Work(all []Work) string {
	own, others := v.split(all)
	var parts []string
	if len(own) > 0 {
		parts = append(parts, names(own))
	}
	if len(others) > 0 {
		parts = append(parts, unnamed(others, len(own) > 0))
	}
	return strings.Join(parts, " and ")
}

// Names lists the names that the viewer may see, ascending, and after them one entry
// for all other work: its number, its GPUs and its priorities.
func (v Viewer) Names(all []Work) []string {
	own, others := v.split(all)
	if len(others) > 0 {
		own = append(own, unnamed(others, len(own) > 0))
	}
	return own
}

// split separates the names that the viewer may see, ascending, from other work.
func (v Viewer) split(all []Work) (own []string, others []Work) {
	for _, w := range all {
		if v.Sees(w.Namespace) {
			own = append(own, w.Unit)
		} else {
			others = append(others, w)
		}
	}
	slices.Sort(own)
	return own, others
}

// unnamed says how much work there is.
func unnamed(all []Work, more bool) string {
	var gpus int64
	for _, w := range all {
		gpus = resource.SaturatingAdd(gpus, int64(w.GPUs))
	}
	least := slices.MinFunc(all, func(a, b Work) int { return cmp.Compare(a.Priority, b.Priority) }).Priority
	most := slices.MaxFunc(all, func(a, b Work) int { return cmp.Compare(a.Priority, b.Priority) }).Priority
	priority := fmt.Sprintf("priority %d", least)
	if most != least {
		priority = fmt.Sprintf("priorities %d to %d", least, most)
	}
	thing := "unit"
	if more {
		thing = "other unit"
	}
	return fmt.Sprintf("%s of %s with %s at %s", count(len(all), thing), verb(len(all), "another tenant", "other tenants"), amount(resource.GPU, gpus), priority)
}

// clock prints a time.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// span prints how long something takes, in whole seconds, at least one.
func span(d time.Duration) string {
	return max(time.Second, d.Round(time.Second)).String()
}
