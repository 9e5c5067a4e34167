package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
)

func (a *app) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "describe KIND NAME… | KIND/NAME…",
		Short:   "Show everything about allocations, jobs, nodes or quotas",
		Example: "  muster describe allocation cpu\n  muster describe node/n1",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			groups, err := parseGroups(args)
			switch {
			case err != nil:
				return err
			case len(groups[0].names) == 0:
				return usagef("name the %s to describe", groups[0].kind)
			case a.allNamespaces:
				return usagef("-A: name the namespace with -n")
			}
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			if !a.isTable() {
				return a.getGroups(ctx, groups, false)
			}
			return a.describeGroups(ctx, groups)
		},
		ValidArgsFunction: a.completeTargets,
	}
}

// describeGroups prints one object after the other, up to the first that is
// missing.
func (a *app) describeGroups(ctx context.Context, groups []group) error {
	first := true
	for _, g := range groups {
		for _, name := range g.names {
			o, err := a.fetch(ctx, g.kind, a.namespace, name, sdk.GetOptions{})
			if err != nil {
				return err
			}
			if !first {
				a.printf("\n")
			}
			first = false
			if err := a.describe(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe prints one object, why it waits where it does, and its events.
func (a *app) describe(ctx context.Context, o object) error {
	if err := o.kind().entry().describe(a, ctx, o); err != nil {
		return err
	}
	if err := a.whyOf(ctx, o); err != nil || !o.kind().hasEvents() {
		return err
	}
	return a.eventsOf(ctx, o)
}

// whyOf says why an object waits, if it does.
func (a *app) whyOf(ctx context.Context, o object) error {
	if phase, _ := o.state(); phase != api.Pending && phase != api.Queued {
		return nil
	}
	k, e, err := a.explain(ctx, o.kind(), o.meta().Name, true, sdk.ExplainOptions{})
	if err != nil {
		return err
	}
	a.printf("\nWhy it waits:\n")
	a.explanation(k, e)
	return nil
}

// facts prints "name: value" lines; empty values are left out.
func (a *app) facts(pairs ...string) {
	t := &table{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.add(pairs[i]+":", pairs[i+1])
		}
	}
	t.write(a.Stdout, "")
}

// section prints a title and a table, if it has rows.
func (a *app) section(title string, t *table) {
	if len(t.rows) > 1 {
		a.printf("\n%s:\n", title)
		t.write(a.Stdout, "  ")
	}
}

func (a *app) describeAllocation(o *api.Allocation) {
	s := &o.Status
	a.facts(append(metaFacts(&o.Metadata),
		"Job", memberOf(s),
		"Phase", phaseOf(string(s.Phase), &o.Metadata),
		"Message", s.Message,
		"Node", nodeOf(s),
		"Started", s.StartTime,
		"Priority", priority(o.Spec.Priority, o.Spec.PriorityClass),
		"Queue", o.Spec.Queue,
		"Requests", amounts(o.Spec.Resources.Requests),
		"Limits", amounts(o.Spec.Resources.Limits),
		"Alternatives", alternatives(&o.Spec, s.Alternative),
		"Transaction", string(s.Transaction),
	)...)
	if g := grantOf(s); s.Assignment != nil {
		a.printf("\nAssignment:\n")
		t := &table{}
		t.add("CPUs", g.cpus)
		t.add("NUMA nodes", g.numa)
		for _, m := range s.Assignment.Memory {
			t.add("memory", fmt.Sprintf("%s on NUMA node %d", m.Bytes, m.Node))
		}
		for _, h := range s.Assignment.Hugepages {
			t.add("huge pages", fmt.Sprintf("%s in %s pages on NUMA node %d", h.Bytes, h.PageSize, h.Node))
		}
		for _, d := range s.Assignment.GPUs {
			share := ""
			if d.Milli != resource.WholeDevice {
				share = fmt.Sprintf("%dm of ", d.Milli)
			}
			t.add(fmt.Sprintf("GPU %d", d.Index), strings.TrimSpace(fmt.Sprintf("%s%s %s", share, d.UUID, d.Model)))
		}
		for _, d := range s.Assignment.MIG {
			t.add(fmt.Sprintf("MIG %d:%d", d.GPU, d.Instance), strings.TrimSpace(fmt.Sprintf("%s %s of %s", d.UUID, d.Profile, d.Model)))
		}
		t.write(a.Stdout, "  ")
	}
	a.section("Conditions", conditions(s.Conditions))
}

func memberOf(s *api.AllocationStatus) string {
	if s.Job == "" {
		return ""
	}
	return fmt.Sprintf("%s, member %d", s.Job, s.Member)
}

func metaFacts(m *api.ObjectMeta) []string {
	return []string{
		"Name", m.Name, "Namespace", m.Namespace, "UID", m.UID, "Labels", labels(m.Labels), "Annotations", labels(m.Annotations),
		"Created", m.CreationTimestamp, "Deleted", m.DeletionTimestamp,
	}
}

// amounts prints quantities in order of their names.
func amounts(m map[resource.Name]string) string {
	pairs := make([]string, 0, len(m))
	for n, v := range m {
		pairs = append(pairs, string(n)+" "+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ", ")
}

// alternatives prints the alternatives of a specification in order. The chosen one is
// marked.
func alternatives(s *api.AllocationSpec, chosen int) string {
	list := make([]string, 0, len(s.Alternatives))
	for i, a := range s.Alternatives {
		var parts []string
		if a.Resources != nil {
			parts = append(parts, amounts(a.Resources.Requests))
		}
		if a.GPU != nil && a.GPU.Model != "" {
			parts = append(parts, "model "+a.GPU.Model)
		}
		if len(a.NodeSelector) > 0 {
			parts = append(parts, "nodes "+labels(a.NodeSelector))
		}
		text := fmt.Sprintf("%d: %s", i+1, strings.Join(parts, ", "))
		if i+1 == chosen {
			text += " (chosen)"
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

func conditions(list []api.Condition) *table {
	t := newTable("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")
	for _, c := range list {
		t.add(c.Type, c.Status, c.LastTransitionTime, c.Reason, c.Message)
	}
	return t
}

func (a *app) describeJob(ctx context.Context, o *api.Job) error {
	first, growth, gang := api.JobUnits(o)
	shape := fmt.Sprintf("%d, each by itself", o.Members())
	switch {
	case gang && growth == 0:
		shape = fmt.Sprintf("%d, all at once or not at all", o.Members())
	case gang:
		shape = fmt.Sprintf("%d, of which %d start at once or not at all and %d more as they fit", o.Members(), first, growth)
	}
	if c := o.Spec.Completions; c != nil && !gang {
		shape += fmt.Sprintf(", at most %d at a time", o.AtOnce())
	}
	position, retries := "", ""
	if o.Status.QueuePosition > 0 {
		position = strconv.Itoa(o.Status.QueuePosition)
	}
	if o.Status.Retries > 0 {
		retries = strconv.Itoa(o.Status.Retries)
	}
	a.facts(append(metaFacts(&o.Metadata),
		"Phase", phaseOf(string(o.Status.Phase), &o.Metadata),
		"Message", o.Status.Message,
		"Members", shape,
		"Active", strconv.Itoa(o.Status.Active), "Succeeded", strconv.Itoa(o.Status.Succeeded), "Failed", strconv.Itoa(o.Status.Failed),
		"Retries", retries, "Next retry", o.Status.NextRetryTime,
		"Started", o.Status.StartTime,
		"Priority", priority(o.Spec.Priority, o.Spec.PriorityClass), "Boost", boostOf(o.Status.Boost),
		"Queue", o.Spec.Queue, "Position", position,
		"Dependencies", dependencies(o.Status.Dependencies),
		"Requests", amounts(o.Spec.Template.Spec.Resources.Requests),
		"Limits", amounts(o.Spec.Template.Spec.Resources.Limits),
		"Alternatives", alternatives(&o.Spec.Template.Spec, 0),
	)...)
	if len(o.Spec.Members) > 0 {
		a.section("Sets of members", setsTable(o))
	}
	members, err := a.members(ctx, o)
	if err != nil {
		return err
	}
	if len(members) > 0 {
		a.section("Members", a.tableOf(allocationKind.entry(), members))
	}
	a.section("Exits", exitsTable(o.Status.Allocations))
	a.section("Use", useTable(o.Status.Allocations))
	a.section("Conditions", conditions(o.Status.Conditions))
	return nil
}

// setsTable has the sets of members that differ, with their indices in the job.
func setsTable(o *api.Job) *table {
	t := newTable("NAME", "MEMBERS", "INDICES", "REQUESTS", "NODE SELECTOR")
	first := 0
	for i, spec := range o.MemberSpecs() {
		n := int(o.Spec.Members[i].Count)
		indices := strconv.Itoa(first)
		if n > 1 {
			indices += "-" + strconv.Itoa(first+n-1)
		}
		t.add(o.Spec.Members[i].Name, strconv.Itoa(n), indices, amounts(spec.Resources.Requests), labels(spec.Scheduling.NodeSelector))
		first += n
	}
	return t
}

// dependencies prints the dependencies of a job, each with its state.
func dependencies(list []api.JobDependencyStatus) string {
	texts := make([]string, len(list))
	for i, d := range list {
		texts[i] = fmt.Sprintf("%s:%s (%s)", d.Type, d.Job, d.State)
	}
	return strings.Join(texts, ", ")
}

// boostOf says until when members that wait have which priority; "" without a boost.
func boostOf(b *api.JobBoost) string {
	if b == nil {
		return ""
	}
	text := fmt.Sprintf("members that wait have priority %d until %s", b.Priority, b.Expires)
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	if b.ApprovedBy != "" {
		text += " (approved by " + b.ApprovedBy + ")"
	}
	return text
}

// exitsTable has the exits of the members whose commands have ended.
func exitsTable(members []api.JobMember) *table {
	t := newTable("NAME", "NODE", "EXIT", "REASON", "MESSAGE")
	for _, m := range members {
		if m.ExitCode != nil {
			t.add(m.Name, m.Node, strconv.Itoa(int(*m.ExitCode)), m.ExitReason, m.ExitMessage)
		}
	}
	return t
}

func (a *app) describeNode(o *api.Node, now time.Time) {
	var addresses, taints []string
	for _, ad := range o.Status.Addresses {
		addresses = append(addresses, ad.Type+" "+ad.Address)
	}
	for _, t := range o.Spec.Taints {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		taints = append(taints, text+":"+t.Effect)
	}
	incarnation := ""
	if o.Status.Incarnation != nil {
		incarnation = o.Status.Incarnation.String()
	}
	a.facts(append(metaFacts(&o.Metadata),
		"Phase", nodeRow(o, time.Time{})[1],
		"Addresses", strings.Join(addresses, ", "),
		"Set by operators", labels(o.Status.OperatorLabels),
		"Taints", strings.Join(taints, ", "),
		"Incarnation", incarnation,
	)...)
	a.section("Resources", resourceTable(o))
	a.section("NUMA nodes", numaTable(o))
	a.section("Devices", deviceTable(o))
	a.section("MIG instances", instanceTable(o))
	a.section("Kubelet", poolTable(o))
	told := newTable("TYPE", "STATUS", "AGE", "REASON", "MESSAGE")
	for _, c := range o.Status.Conditions {
		told.add(c.Type, c.Status, age(c.LastTransitionTime, now), c.Reason, c.Message)
	}
	a.section("Conditions", told)
	allocations := newTable("ALLOCATION")
	for _, n := range o.Status.Allocations {
		allocations.add(n)
	}
	if others := o.Status.OtherAllocations; others > 0 {
		allocations.add(fmt.Sprintf("and %d of other tenants", others))
	}
	a.section("Allocations", allocations)
}

// resourceTable has a column of the expected capacity where that was sent and differs
// from the capacity that the agent has found.
func resourceTable(o *api.Node) *table {
	expected := map[resource.Name]string{}
	for n, text := range o.Spec.Capacity {
		found, err := resource.ParseAmount(n, o.Status.Capacity[n])
		if want, bad := resource.ParseAmount(n, text); err != nil || bad != nil || want != found {
			expected[n] = text
		}
	}
	heads := []string{"RESOURCE", "CAPACITY", "ALLOCATABLE", "FREE", "USED NOW"}
	if len(expected) > 0 {
		heads = append(heads, "EXPECTED")
	}
	t := newTable(heads...)
	all := maps.Clone(o.Status.Capacity)
	if all == nil {
		all = map[resource.Name]string{}
	}
	maps.Copy(all, expected)
	for _, n := range names(all) {
		cell := func(m map[resource.Name]string) string { return humanAmount(n, m[n]) }
		row := []string{string(n), cell(o.Status.Capacity), cell(o.Status.Allocatable), orZero(cell(o.Status.Available)), cell(o.Status.Usage)}
		if len(expected) > 0 {
			row = append(row, o.Spec.Capacity[n])
		}
		t.add(row...)
	}
	return t
}

func numaTable(o *api.Node) *table {
	t := newTable("NUMA", "CPUS", "FREE CPU", "FREE CORES", "MEMORY", "FREE MEMORY", "FREE HUGE PAGES")
	for _, n := range o.Status.NUMANodes {
		var huge []string
		for _, name := range names(n.FreeHugepages) {
			if size, ok, _ := name.HugepageSize(); ok {
				huge = append(huge, fmt.Sprintf("%s in %s pages", humanAmount(name, n.FreeHugepages[name]), resource.FormatBytes(size)))
			}
		}
		t.add(strconv.Itoa(n.ID), n.CPUs, orZero(n.FreeCPU), strconv.Itoa(n.FreeCores),
			humanAmount(resource.Memory, n.Memory), humanAmount(resource.Memory, n.FreeMemory), strings.Join(huge, ", "))
	}
	return t
}

func deviceTable(o *api.Node) *table {
	t := newTable("GPU", "UUID", "MODEL", "MEMORY", "MEMORY USED", "USE", "NUMA", "HEALTH", "FREE", "REASON")
	for _, d := range o.Status.Devices {
		free := resource.FormatAmount(resource.GPU, int64(d.Free))
		if d.MIG != nil {
			free = "MIG"
		}
		reason := d.HealthReason
		if d.Withheld {
			by := "withheld by an operator"
			if o.Status.Phase == "AwaitingApproval" {
				by += ", or until its growth is approved"
			}
			reason = join(by, reason)
		}
		t.add(strconv.Itoa(d.Index), d.UUID, d.Model, humanAmount(resource.Memory, d.Memory), memoryUsed(d.MemoryUsed), use(d.UsePercent),
			strconv.Itoa(d.NUMANode), d.Health, free, reason)
	}
	return t
}

func instanceTable(o *api.Node) *table {
	t := newTable("INSTANCE", "UUID", "PROFILE", "MEMORY", "MEMORY USED", "USE", "FREE")
	for _, d := range o.Status.Devices {
		if d.MIG == nil {
			continue
		}
		for k, g := range d.MIG.Instances {
			free := "0"
			if g.Free {
				free = "1"
			}
			t.add(fmt.Sprintf("%d:%d", d.Index, k), g.UUID, g.Profile, humanAmount(resource.Memory, g.Memory), memoryUsed(g.MemoryUsed), use(g.UsePercent), free)
		}
	}
	return t
}

// unknownUse stands for a use that the driver does not report, which is not 0.
const unknownUse = "unknown"

func use(percent *int) string {
	if percent == nil {
		return unknownUse
	}
	return strconv.Itoa(*percent) + "%"
}

func memoryUsed(text string) string {
	if text == "" {
		return unknownUse
	}
	return humanAmount(resource.Memory, text)
}

func names(m map[resource.Name]string) []resource.Name {
	list := make([]resource.Name, 0, len(m))
	for n := range m {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}
