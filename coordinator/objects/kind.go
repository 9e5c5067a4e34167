package objects

import (
	"cmp"
	"strings"

	"github.com/musterd/muster/api"
)

// Kind is a kind of objects.
type Kind uint8

// The kinds, in the order of the events of one revision.
const (
	Allocations Kind = iota
	Jobs
	Nodes
	ResourceQuotas
	QuotaForests
	QuotaBindings
	Tenants
	Namespaces
	Resources
	Queues
	PriorityClasses
	AccessTokens
	RoleBindings
	QuotaTrees
	Events     // derived from the changes of the others
	kinds  int = iota
)

// kindNames are the kinds as documents name them.
var kindNames = [kinds]string{
	api.KindAllocation, api.KindJob, api.KindNode, api.KindResourceQuota, api.KindQuotaForest, api.KindQuotaBinding, api.KindTenant, api.KindNamespace, api.KindResource,
	api.KindQueue, api.KindPriorityClass, api.KindAccessToken, api.KindRoleBinding, api.KindQuotaTree, api.KindEvent,
}

// String is the kind as documents name it.
func (k Kind) String() string { return kindNames[k] }

// Name names an object. Namespace is "" for the kinds that are in none.
type Name struct {
	Kind            Kind
	Namespace, Name string
}

// Named is a name out of a position, NAMESPACE/NAME; the zero value for "".
func Named(k Kind, position string) Name {
	namespace, name, _ := strings.Cut(position, "/")
	return Name{k, namespace, name}
}

// compare orders by kind, namespace and name.
func (n Name) compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Kind, o.Kind), cmp.Compare(n.Namespace, o.Namespace), cmp.Compare(n.Name, o.Name))
}

// position is the place of an object in the table of its kind. The byte 0 is in
// no namespace, so the table is in the order of namespace and name.
func (n Name) position() string { return n.Namespace + "\x00" + n.Name }
