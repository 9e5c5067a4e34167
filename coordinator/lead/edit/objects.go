package edit

import (
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Objects are the objects of all kinds that package edit judges.
type Objects struct {
	Tenants    *Table[api.Tenant]
	Namespaces *Table[api.Namespace]
	Forests    *Table[api.QuotaForest]
	Bindings   *Table[api.QuotaBinding] // by namespace
	Resources  *Table[api.Resource]
	Queues     *Table[api.Queue]
	Classes    *Table[api.PriorityClass]

	rows []row
}

// row is the table of a kind, whatever the kind is.
type row interface {
	load(kv record.KV) (mine bool, err error)
	prefix() string
}

// New returns tables without objects.
func New() *Objects {
	o := &Objects{
		Tenants: newTable(Tenants), Namespaces: newTable(Namespaces), Forests: newTable(Forests), Bindings: newTable(Bindings), Resources: newTable(Resources),
		Queues: newTable(Queues), Classes: newTable(Classes),
	}
	o.rows = []row{o.Tenants, o.Namespaces, o.Forests, o.Bindings, o.Resources, o.Queues, o.Classes}
	return o
}

// Prefixes are the beginnings of the keys of all kinds, but those below
// record.QuotaPrefix, which are loaded with the other quotas.
func Prefixes() []string {
	var all []string
	for _, r := range New().rows {
		if !strings.HasPrefix(r.prefix(), record.QuotaPrefix) {
			all = append(all, r.prefix())
		}
	}
	return all
}

// Of returns the table of a kind.
func Of[T any](o *Objects) *Table[T] {
	for _, r := range o.rows {
		if t, is := r.(*Table[T]); is {
			return t
		}
	}
	panic("edit: there is no table of this kind") // each kind has a row in New
}

// Load takes an object of the store. mine is false for a key of no kind here.
func (o *Objects) Load(kv record.KV) (mine bool, err error) {
	for _, r := range o.rows {
		if mine, err := r.load(kv); mine {
			return true, err
		}
	}
	return false, nil
}
