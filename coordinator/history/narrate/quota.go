package narrate

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// quota is a resource quota as its key has it.
type quota struct {
	record     *record.Quota
	hard, soft resource.Vector
	scoped     bool
	from       time.Time
	revision   resource.Revision
}

// takeQuota takes a key of quotas; those of trees and forests make no rows.
func (n *Narrator) takeQuota(c *change, e record.Event) error {
	key, err := record.ParseQuotaKey(e.KV.Key)
	if err != nil || key.Kind != record.QuotaResources {
		return err
	}
	if _, noted := c.quotas[e.KV.Key]; !noted {
		c.quotas[e.KV.Key] = n.quotas[e.KV.Key]
	}
	if e.Type == record.EventDelete {
		delete(n.quotas, e.KV.Key)
		return nil
	}
	rec, err := decode[record.Quota](e.KV)
	if err != nil {
		return err
	}
	var doc api.ResourceQuota
	if err := json.Unmarshal(rec.Document, &doc); err != nil {
		return inKey(e.KV, "document", err)
	}
	q := &quota{record: rec, hard: limitsOf(doc.Spec.Hard), soft: limitsOf(doc.Spec.Soft), revision: e.KV.ModRev}
	q.scoped = len(doc.Spec.Scopes) > 0 || doc.Spec.ScopeSelector != nil
	q.from = first(instant(rec.ChangedMillis), parsed(rec.Created))
	c.note(q.from)
	n.quotas[e.KV.Key] = q
	return nil
}

// takeNamespace takes the owner of a namespace.
func (n *Narrator) takeNamespace(c *change, e record.Event) error {
	name, err := record.ParseNamespaceKey(e.KV.Key)
	if err != nil {
		return err
	}
	c.owned[name] = true
	delete(n.owners, name)
	if e.Type == record.EventDelete {
		return nil
	}
	kept, err := edit.Namespaces.Read(e.KV)
	if err == nil {
		n.owners[name] = edit.OwnerOf(&kept.Object)
	}
	return err
}

// ownerOf is the tenant of a namespace. One without an object belongs to the tenant of
// its name.
func (n *Narrator) ownerOf(namespace string) resource.TenantID {
	return cmp.Or(n.owners[namespace], resource.TenantID(namespace))
}

// tellQuotas makes the rows of the limits that have changed. Each change of a quota ends
// all limits of the version before, so that the key of a limit has the instant of the
// record.
func (n *Narrator) tellQuotas(c *change) {
	for _, key := range slices.Sorted(maps.Keys(c.quotas)) {
		before, after := c.quotas[key], n.quotas[key]
		if before != nil && (after == nil || !after.from.Equal(before.from)) {
			to := c.at
			if after != nil {
				to = after.from
			}
			for _, row := range n.quotaRows(before) {
				row.To, row.Revision = latest(row.From, to), c.revision
				n.out.quota(row)
			}
		}
		if after != nil {
			for _, row := range n.quotaRows(after) {
				n.out.quota(row)
			}
		}
	}
}

func (n *Narrator) quotaRows(q *quota) (rows []history.Quota) {
	names := map[resource.Name]bool{}
	for name := range q.hard {
		names[name] = true
	}
	for name := range q.soft {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row := history.Quota{
			Namespace: q.record.Namespace, Name: q.record.Name, Tenant: n.ownerOf(q.record.Namespace), Slot: name,
			Hard: resource.Unlimited, Soft: resource.Unlimited, Scoped: q.scoped, From: q.from, Revision: q.revision,
		}
		if amount, limited := q.hard[name]; limited {
			row.Hard = amount
		}
		if amount, limited := q.soft[name]; limited {
			row.Soft = amount
		}
		rows = append(rows, row)
	}
	return rows
}

// declaration is a resource as an operator wrote it.
type declaration struct {
	entry    registry.Entry
	revision resource.Revision
}

// takeResource takes a name of the registry.
func (n *Narrator) takeResource(c *change, e record.Event) error {
	text, err := edit.Resources.NameIn(e.KV.Key)
	if err != nil {
		return err
	}
	name := resource.Name(text)
	c.names[name] = true
	delete(n.names, name)
	if e.Type == record.EventDelete {
		return nil
	}
	kept, err := edit.Resources.Read(e.KV)
	if err == nil {
		n.names[name] = declaration{edit.ResourceEntry(&kept.Object), e.KV.ModRev}
	}
	return err
}

// tellResource makes the row of a name. One that an operator has deleted keeps its row,
// which older rows refer to.
func (n *Narrator) tellResource(name resource.Name) {
	if d, written := n.names[name]; written {
		n.out.slots.put(name, slotOf(d.entry, d.revision))
	}
}

// tellBuiltIn makes the rows of the names that no operator has written.
func (n *Narrator) tellBuiltIn() {
	for _, e := range registry.BuiltIn() {
		if _, written := n.names[e.Name]; !written && !strings.HasSuffix(string(e.Name), "*") {
			n.out.slots.put(e.Name, slotOf(e, 0))
		}
	}
}

func slotOf(e registry.Entry, at resource.Revision) history.Slot {
	return history.Slot{
		Name: e.Name, Kind: string(e.Kind), DisplayName: e.DisplayName, Unit: e.Unit, PerCluster: e.Scope == registry.PerCluster, Rank: e.Rank, Revision: at,
	}
}
