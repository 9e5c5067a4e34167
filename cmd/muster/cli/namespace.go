package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterd/muster/api"
)

// This file shows tenants and namespaces.

func tenantRow(t *api.Tenant, now time.Time) (cells, wide []string) {
	return []string{t.Metadata.Name, t.Spec.DisplayName, t.Spec.Owner, age(t.Metadata.CreationTimestamp, now)}, []string{strings.Join(t.Spec.Contacts, ",")}
}

func (a *app) describeTenant(t *api.Tenant) {
	a.facts(append(metaFacts(&t.Metadata), "Display name", t.Spec.DisplayName, "Owner", t.Spec.Owner, "Contacts", strings.Join(t.Spec.Contacts, ", "),
		"Unsatisfiable", t.Spec.Unsatisfiable)...)
}

// namespaceRow shows the rules in force: a rule that the object leaves out has its
// default; deviceLost and unsatisfiable have none of their own.
func namespaceRow(n *api.Namespace, now time.Time) (cells, wide []string) {
	s := &n.Spec
	cells = []string{
		n.Metadata.Name, cmp.Or(s.Tenant, n.Metadata.Name), cmp.Or(s.Admission, "reject"), ceilingOf(s), cmp.Or(s.DefaultQueue, "default"),
		age(n.Metadata.CreationTimestamp, now),
	}
	return cells, []string{s.Unsatisfiable, s.DeviceLost}
}

// ceilingOf is the priority ceiling, "" for none.
func ceilingOf(s *api.NamespaceSpec) string {
	if s.PriorityCeiling == nil {
		return ""
	}
	return strconv.Itoa(int(*s.PriorityCeiling))
}

// roleCeilingsOf are the ceilings by role, "" for none.
func roleCeilingsOf(s *api.NamespaceSpec) string {
	var words []string
	for _, role := range slices.Sorted(maps.Keys(s.RoleCeilings)) {
		words = append(words, role+" "+strconv.Itoa(int(s.RoleCeilings[role])))
	}
	return strings.Join(words, ", ")
}

// idleOf is the treatment of jobs whose GPUs do nothing.
func idleOf(s *api.NamespaceSpec) string {
	if s.Idle == nil {
		return "go on"
	}
	below, length, then := s.Idle.Rule()
	return fmt.Sprintf("%s, once their GPUs are used below %d%% for %s", then, below, length)
}

func (a *app) describeNamespace(n *api.Namespace) {
	s := &n.Spec
	a.facts(append(metaFacts(&n.Metadata),
		"Tenant", cmp.Or(s.Tenant, n.Metadata.Name), "Admission", cmp.Or(s.Admission, "reject"), "Unsatisfiable", cmp.Or(s.Unsatisfiable, "as its tenant or the coordinators' configuration says"),
		"Device lost", cmp.Or(s.DeviceLost, "as the coordinators' configuration says"), "Priority ceiling", cmp.Or(ceilingOf(s), "none (roles of tenants: 1000)"), "Role ceilings", roleCeilingsOf(s),
		"Default queue", cmp.Or(s.DefaultQueue, "default"), "Idle jobs", idleOf(s))...)
	if n.Status.Used != nil && n.Status.Hard != nil {
		a.describeCounts(n.Status.Used, n.Status.Hard)
	}
}

// describeCounts prints the use of each count quota with its limit.
func (a *app) describeCounts(used, hard *api.NamespaceCounts) {
	t := newTable("OBJECTS", "USED", "HARD")
	for _, row := range []struct {
		name       string
		used, hard *int64
	}{
		{"allocations", used.Allocations, hard.Allocations}, {"jobs", used.Jobs, hard.Jobs}, {"waitingUnits", used.WaitingUnits, hard.WaitingUnits},
		{"annotationBytes", used.AnnotationBytes, hard.AnnotationBytes}, {"documentBytes", used.DocumentBytes, hard.DocumentBytes},
	} {
		t.add(row.name, countOf(row.used, "0"), countOf(row.hard, "none"))
	}
	a.printf("\n")
	t.write(a.Stdout, "")
}

// countOf is a number, or the word for none.
func countOf(n *int64, none string) string {
	if n == nil {
		return none
	}
	return strconv.FormatInt(*n, 10)
}
