package cli

import (
	"cmp"
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

func (a *app) describeNamespace(n *api.Namespace) {
	s := &n.Spec
	a.facts(append(metaFacts(&n.Metadata),
		"Tenant", cmp.Or(s.Tenant, n.Metadata.Name), "Admission", cmp.Or(s.Admission, "reject"), "Unsatisfiable", cmp.Or(s.Unsatisfiable, "as its tenant or the coordinators' configuration says"),
		"Device lost", cmp.Or(s.DeviceLost, "as the coordinators' configuration says"), "Priority ceiling", cmp.Or(ceilingOf(s), "none"),
		"Default queue", cmp.Or(s.DefaultQueue, "default"))...)
}
