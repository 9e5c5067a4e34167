package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// tables prints objects, one table per kind.
func (a *app) tables(objects []object) {
	first := true
	for _, e := range entries() {
		var some []object
		for _, o := range objects {
			if o.kind() == e.kind {
				some = append(some, o)
			}
		}
		if len(some) == 0 {
			continue
		}
		if !first {
			a.printf("\n")
		}
		first = false
		if e.draw != nil {
			e.draw(a, some)
			continue
		}
		a.tableOf(e, some).write(a.Stdout, "")
	}
}

// tableOf builds the table of one kind. Namespaces show where there may be
// several, names are KIND/NAME where several kinds were asked for, and -o wide
// has more columns.
func (a *app) tableOf(e entry, objects []object) *table {
	now := time.Now()
	heads := slices.Clone(e.heads)
	namespaced := a.allNamespaces && e.kind.namespaced()
	if namespaced {
		heads = append([]string{"NAMESPACE"}, heads...)
	}
	wide := a.output == "wide"
	if wide {
		heads = append(heads, e.wide...)
	}
	showLabels := a.showLabels && !slices.Contains(heads, "LABELS")
	if showLabels {
		heads = append(heads, "LABELS")
	}
	t := &table{paint: a.style().phases(slices.Index(heads, "PHASE"))}
	if !a.noHeaders {
		t.rows = append(t.rows, heads)
	}
	for _, o := range objects {
		var cells []string
		if namespaced {
			cells = append(cells, o.meta().Namespace)
		}
		row, more := e.row(o, now)
		if a.severalKinds && e.kind != eventKind { // which has no name in its table
			row[0] = fmt.Sprintf("%s/%s", e.kind, row[0])
		}
		cells = append(cells, row...)
		if wide {
			cells = append(cells, more...)
		}
		if showLabels {
			cells = append(cells, labels(o.meta().Labels))
		}
		t.add(cells...)
	}
	return t
}

// phaseColours are the colours of phases that a person should look at.
var phaseColours = map[string]string{
	"Failed": red, "NotReady": red, "Fenced": red, "Quarantined": red, "ProtocolViolation": red, "Banned": red, "Unregistered": red,
	"Pending": yellow, "Queued": yellow, "Terminating": yellow, "Cancelling": yellow, "Preempted": yellow, "AwaitingApproval": yellow,
}

// phases colours the cells of the column of phases, nil where nothing is
// coloured.
func (s style) phases(column int) func(row, at int, cell string) string {
	if !s.on || column < 0 {
		return nil
	}
	return func(_, at int, cell string) string {
		phase, rest, more := strings.Cut(cell, ",")
		colour := phaseColours[phase]
		switch {
		case at != column:
			return cell
		case colour == "" && more: // a node that is ready and cordoned
			return phase + "," + s.paint(yellow, rest)
		case colour == "":
			return cell
		}
		return s.paint(colour, cell)
	}
}

func allocationRow(o *api.Allocation, now time.Time) []string {
	g := grantOf(&o.Status)
	return []string{o.Metadata.Name, phaseOf(string(o.Status.Phase), &o.Metadata), nodeOf(&o.Status), g.cpus, g.numa, g.memory, g.gpus, age(o.Metadata.CreationTimestamp, now)}
}

func allocationWide(o *api.Allocation) []string {
	var uuids []string
	if o.Status.Assignment != nil {
		for _, g := range o.Status.Assignment.GPUs {
			uuids = append(uuids, g.UUID)
		}
		for _, g := range o.Status.Assignment.MIG {
			uuids = append(uuids, g.UUID)
		}
	}
	return []string{o.Status.Job, strings.Join(uuids, ","), o.Status.Message}
}

func nodeOf(s *api.AllocationStatus) string {
	if s.NodeName != "" {
		return s.NodeName
	}
	return string(s.NodeID)
}

// phaseOf shows an object on its way out as kubectl does.
func phaseOf(phase string, m *api.ObjectMeta) string {
	if m.DeletionTimestamp != "" && !api.Phase(phase).Ended() {
		return string(api.Terminating)
	}
	return phase
}

// grant words the resources of an allocation: the amount, and in brackets
// exactly which.
type grant struct{ cpus, numa, memory, gpus string }

func grantOf(s *api.AllocationStatus) grant {
	var g grant
	if s.Assignment == nil {
		return g
	}
	var numa bitset.Set
	for _, n := range s.Assignment.NUMANodes {
		numa.Add(n)
	}
	cpus := allocated(s, resource.CPU)
	if cores := allocated(s, resource.Cores); cores != "" {
		cpus = plural(cores, "core")
	}
	g.cpus = which(cpus, s.Assignment.CPUs)
	g.numa = numa.String()
	g.memory = memoryOf(s)
	g.gpus = devicesOf(s)
	return g
}

// allocated is an amount in its shortest form: the server writes amounts as they
// were requested.
func allocated(s *api.AllocationStatus, name resource.Name) string {
	text := s.AllocatedResources[name]
	if amount, err := api.ParseAmount(name, text); err == nil {
		return resource.FormatAmount(name, amount)
	}
	return text
}

// which is an amount and the list of its parts.
func which(amount, list string) string {
	if amount == "" {
		return list
	}
	if list == "" {
		return amount
	}
	return fmt.Sprintf("%s (%s)", amount, list)
}

func plural(amount, noun string) string {
	if amount == "1" {
		return "1 " + noun
	}
	return amount + " " + noun + "s"
}

// memoryOf is ordinary memory, and the memory in huge pages.
func memoryOf(s *api.AllocationStatus) string {
	var parts []string
	if m := allocated(s, resource.Memory); m != "" {
		parts = append(parts, m)
	}
	for _, name := range names(s.AllocatedResources) {
		if size, ok, _ := name.HugepageSize(); ok {
			parts = append(parts, fmt.Sprintf("%s in %s pages", allocated(s, name), resource.FormatBytes(size)))
		}
	}
	return strings.Join(parts, " + ")
}

// devicesOf is GPUs by their index, or MIG instances by GPU:INSTANCE.
func devicesOf(s *api.AllocationStatus) string {
	var devices bitset.Set
	for _, d := range s.Assignment.GPUs {
		devices.Add(d.Index)
	}
	parts := []string{}
	if gpus := which(allocated(s, resource.GPU), devices.String()); gpus != "" {
		parts = append(parts, gpus)
	}
	byProfile := map[string][]string{}
	for _, d := range s.Assignment.MIG {
		byProfile[d.Profile] = append(byProfile[d.Profile], fmt.Sprintf("%d:%d", d.GPU, d.Instance))
	}
	for _, profile := range slices.Sorted(maps.Keys(byProfile)) {
		list := byProfile[profile]
		parts = append(parts, fmt.Sprintf("%d × %s (%s)", len(list), profile, strings.Join(list, ",")))
	}
	return strings.Join(parts, " + ")
}

func jobRow(o *api.Job, now time.Time) []string {
	position := ""
	if o.Status.QueuePosition > 0 {
		position = strconv.Itoa(o.Status.QueuePosition)
	}
	return []string{
		o.Metadata.Name, phaseOf(string(o.Status.Phase), &o.Metadata), fmt.Sprintf("%d/%d", o.Status.Active, o.Members()), position,
		age(o.Metadata.CreationTimestamp, now),
	}
}

func jobWide(o *api.Job) []string {
	return []string{o.Spec.Queue, priority(o.Spec.Priority, o.Spec.PriorityClass), o.Status.Message}
}

func priority(number *int32, class string) string {
	value := api.PriorityOf(number, class)
	if class != "" {
		return fmt.Sprintf("%d (%s)", value, class)
	}
	return strconv.Itoa(int(value))
}

func nodeRow(o *api.Node, now time.Time) []string {
	phase := o.Status.Phase
	if o.Spec.Unschedulable {
		phase += ",SchedulingDisabled"
	}
	share := func(n resource.Name) string {
		total := o.Status.Allocatable[n]
		if total == "" {
			return "0"
		}
		free := o.Status.Available[n]
		if free == "" {
			free = "0"
		}
		return humanAmount(n, free) + "/" + humanAmount(n, total)
	}
	gpus := share(resource.GPU)
	for _, n := range names(o.Status.Allocatable) {
		if profile, ok, _ := n.MIGProfile(); ok {
			gpus += fmt.Sprintf(" + %s × %s", share(n), profile)
		}
	}
	return []string{
		o.Metadata.Name, phase, share(resource.CPU), strconv.Itoa(len(o.Status.NUMANodes)), share(resource.Memory), gpus,
		age(o.Metadata.CreationTimestamp, now),
	}
}

func nodeWide(o *api.Node) []string {
	var models []string
	for _, d := range o.Status.Devices {
		if !slices.Contains(models, d.Model) {
			models = append(models, d.Model)
		}
	}
	return []string{strings.Join(models, ","), strconv.Itoa(len(o.Status.Allocations) + o.Status.OtherAllocations), labels(o.Metadata.Labels)}
}

// labels prints labels in order.
func labels(m map[string]string) string {
	pairs := make([]string, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// humanAmount rounds a host's memory to a readable size ("123.4Gi"); an amount that is
// granted is always shown exactly.
func humanAmount(n resource.Name, text string) string {
	if _, huge, _ := n.HugepageSize(); n != resource.Memory && !huge {
		return text
	}
	v, err := resource.ParseAmount(n, text)
	if err != nil {
		return text
	}
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	unit, size := 0, int64(1)
	for unit < len(units)-1 && v/size >= 1024 {
		size *= 1024
		unit++
	}
	return strings.TrimSuffix(strconv.FormatFloat(float64(v)/float64(size), 'f', 1, 64), ".0") + units[unit]
}

// age prints how long ago a timestamp was, as kubectl does.
func age(timestamp string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return ""
	}
	d := max(0, now.Sub(t))
	seconds, minutes, hours := int(d.Seconds()), int(d.Minutes()), int(d.Hours())
	switch {
	case seconds < 120:
		return fmt.Sprintf("%ds", seconds)
	case minutes < 120:
		return fmt.Sprintf("%dm", minutes)
	case hours < 48:
		return fmt.Sprintf("%dh", hours)
	}
	return fmt.Sprintf("%dd", hours/24)
}
