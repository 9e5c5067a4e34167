// Package entries decides which changes have an entry of the audit of their own, and which
// changes an earlier entry counts: no tenant can fill the store, or leave another caller
// without an entry. Each change is in exactly one entry. The package keeps the counts of an
// hour in bounded memory; the caller writes the entries, and knows the people of tenants.
package entries

import (
	"time"

	"github.com/musterd/muster/coordinator/record"
)

// The shares of an hour, in entries.
const (
	// MostAlike is how many changes alike (person, verb, object) have an entry each; the
	// last of these entries counts the further changes.
	MostAlike = 16
	// MostOfPerson and MostOfTenant are the entries with the name of an object, and MostOfAll
	// those of all tenants together. Sure of a tenant's entries do not depend on other tenants.
	MostOfPerson = 4_000
	MostOfTenant = 10_000
	MostOfAll    = 40_000
	Sure         = 1_000
	// MostGroups are a tenant's further entries, each for a person, a verb, a kind and a
	// namespace. The last entry of a tenant counts the changes beyond all others.
	MostGroups = 200
)

// Several stands for the verb and the kind of a tenant's last entry.
const Several = "several"

// Hour is the entries of the present hour. The zero value is empty. A single goroutine
// uses an Hour at a time.
type Hour struct {
	began   time.Time
	tenants map[string]*share
	named   int // entries with the name of an object, of all tenants
}

// share is the entries of a tenant, or of a person without a tenant.
type share struct {
	persons map[string]int // entries with the name of an object
	named   int            // the sum of persons
	objects map[what]*entry
	groups  map[what]*entry
	last    *entry
}

// what is the changes of an entry; name is "" in a group.
type what struct{ person, verb, kind, namespace, name string }

type entry struct {
	alike int // changes to the object
	first record.Audit
}

// Next is the entry to write with a change: the change's own, or an earlier entry with
// a greater count. A change of an administrator, an operator or a host has an own entry.
// now never goes back.
func (h *Hour) Next(now time.Time, change record.Audit) record.Audit {
	if now.Sub(h.began) >= time.Hour || h.tenants == nil {
		*h = Hour{began: now, tenants: map[string]*share{}}
	}
	if change.Apart {
		return change
	}
	owner := "tenant " + change.Tenant
	if change.Tenant == "" {
		owner = "person " + change.Person
	}
	s := h.tenants[owner]
	if s == nil {
		s = &share{persons: map[string]int{}, objects: map[what]*entry{}, groups: map[what]*entry{}}
		h.tenants[owner] = s
	}
	of := what{change.Person, change.Verb, change.Kind, change.Namespace, change.Name}
	same := s.objects[of]
	if same != nil && same.alike >= MostAlike {
		return same.count()
	}
	if s.persons[change.Person] >= MostOfPerson || s.named >= MostOfTenant || s.named >= Sure && h.named >= MostOfAll {
		of.name = ""
		return s.counted(of, change)
	}
	s.persons[change.Person]++
	s.named++
	h.named++
	if same == nil {
		same = new(entry)
		s.objects[of] = same
	}
	same.alike++
	same.first = change
	return change
}

// counted is the entry of a change beyond the entries with names.
func (s *share) counted(of what, change record.Audit) record.Audit {
	group := s.groups[of]
	switch {
	case group != nil:
		return group.count()
	case len(s.groups) < MostGroups:
		change.Name, change.Count = "", 1
		s.groups[of] = &entry{first: change}
		return change
	case s.last != nil:
		return s.last.count()
	}
	change.Person, change.Token, change.Verb, change.Kind, change.Namespace, change.Name, change.Count = "", "", Several, Several, "", "", 1
	s.last = &entry{first: change}
	return change
}

// count is the entry with a further change.
func (e *entry) count() record.Audit {
	e.first.Count = max(e.first.Count, 1) + 1
	return e.first
}
