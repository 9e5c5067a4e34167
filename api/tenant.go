package api

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterd/muster/api/internal/strict"
)

// KindTenant is the kind of a Tenant document.
const KindTenant = "Tenant"

// Tenant is a team or a project that owns namespaces. Quota, shares and rights are
// those of its namespaces; the tenant itself holds nothing.
type Tenant struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"Tenant" oneof:"Tenant"`
	// Metadata names the tenant. A tenant is in no namespace.
	Metadata ObjectMeta `json:"metadata"`
	// Spec describes the tenant.
	Spec TenantSpec `json:"spec"`
}

// TenantSpec describes a tenant to people, and has a rule for the work of its
// namespaces.
type TenantSpec struct {
	// DisplayName is the name that people read: at most 256 bytes.
	DisplayName string `json:"displayName,omitempty" example:"Computer Vision"`
	// Owner is the person or the group that answers for the tenant: at most 256 bytes.
	Owner string `json:"owner,omitempty" example:"ada@example.org"`
	// Contacts are further people and addresses to ask: at most 16, each of at most
	// 256 bytes.
	Contacts []string `json:"contacts,omitempty" example:"[vision-ops@example.org]"`
	// Unsatisfiable is the treatment of work that can never run on the nodes registered
	// now and within the quota as it is: wait lets the work wait for nodes, reject
	// answers 422. The unsatisfiable of a namespace replaces it. Default: unsatisfiable
	// of the coordinators' configuration.
	Unsatisfiable string `json:"unsatisfiable,omitempty" oneof:"wait,reject"`
	// RequestsPerMinute is the number of requests to the API that the tokens of the
	// tenant may send in a minute, at all coordinators together: 1 to 10000000. Each of
	// n live coordinators takes an n-th of the number. Default: limits.requestsPerMinute
	// of the coordinators' configuration.
	RequestsPerMinute int `json:"requestsPerMinute,omitempty" example:"60000"`
}

// TenantList is a list of tenants, ordered by name.
type TenantList struct {
	// Kind is TenantList.
	Kind string `json:"kind" oneof:"TenantList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the tenants.
	Items []Tenant `json:"items"`
}

// The bounds of a tenant's texts.
const (
	// MaxContacts bounds the contacts of a tenant.
	MaxContacts = 16
	// MaxLine bounds a text that people read in one line, in bytes.
	MaxLine = 256
	// MaxRequestsPerMinute bounds the requests of a tenant in a minute.
	MaxRequestsPerMinute = 10_000_000
)

var tenantDecoder = strict.For[Tenant]()

// DecodeTenant reads and validates a tenant as DecodeResourceQuota does a resource
// quota.
func DecodeTenant(doc []byte) (*Tenant, *Status) {
	return decodeValid(tenantDecoder, doc, func(t *Tenant) *Status {
		status := t.Metadata.settable(&t.APIVersion, &t.Kind, KindTenant)
		return allFaults(status, t.Validate())
	})
}

// Validate refuses a name that is not a label, and texts that are too long or that
// a terminal would not print.
func (t *Tenant) Validate() *Status {
	var faults faults
	faults.add(checkLabelName(t.Metadata, "tenant"))
	faults.add(checkLine("spec.displayName", t.Spec.DisplayName))
	faults.add(checkLine("spec.owner", t.Spec.Owner))
	if value := t.Spec.Unsatisfiable; value != "" && value != "wait" && value != "reject" {
		faults.add(invalid("spec.unsatisfiable", "%q: want wait or reject", clip(value)))
	}
	if n := t.Spec.RequestsPerMinute; n < 0 || n > MaxRequestsPerMinute {
		faults.add(invalid("spec.requestsPerMinute", "%d is outside 1..%d; leave the field out for the default", n, MaxRequestsPerMinute))
	}
	faults.add(atMost("spec.contacts", len(t.Spec.Contacts), MaxContacts))
	for i, contact := range t.Spec.Contacts {
		path := fmt.Sprintf("spec.contacts[%d]", i)
		if strings.TrimSpace(contact) == "" {
			faults.add(invalid(path, "empty: name a person or an address, or leave the entry out"))
		}
		faults.add(checkLine(path, contact))
	}
	return faults.status()
}

// checkLabelName validates the metadata of an object of no namespace whose name is
// a label.
func checkLabelName(m ObjectMeta, what string) *Status {
	var faults faults
	switch {
	case m.Name == "":
		faults.add(invalid("metadata.name", "required: %s", labelRule))
	case !IsLabel(m.Name):
		faults.add(invalid("metadata.name", "%q is not the name of a %s: %s", clip(m.Name), what, labelRule))
	}
	faults.add(checkCluster(m))
	return faults.status()
}

// checkLine refuses a text that is not one printable line.
func checkLine(path, text string) *Status {
	switch {
	case len(text) > MaxLine:
		return invalid(path, "%d bytes long, the limit is %d", len(text), MaxLine)
	case !utf8.ValidString(text):
		return invalid(path, "%q is not UTF-8", clip(text))
	}
	if at := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); at >= 0 {
		return invalid(path, "%q has a character at byte %d that is not printed: want one line of text", clip(text), at)
	}
	return nil
}
