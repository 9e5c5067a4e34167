package quota

import (
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// perUser is the usage of each user that a limit counts. The zero value counts nobody.
//
// Invariant: of has the users with a charge that is not zero.
type perUser struct {
	names []resource.Name // ascending
	of    map[string][]int64
}

func newPerUser(limits resource.Vector) perUser {
	if len(limits) == 0 {
		return perUser{}
	}
	names := limits.Names()
	slices.Sort(names)
	return perUser{names, map[string][]int64{}}
}

func (p *perUser) clone() perUser {
	made := perUser{names: p.names}
	if p.of != nil {
		made.of = make(map[string][]int64, len(p.of))
	}
	for user, used := range p.of {
		made.of[user] = slices.Clone(used)
	}
	return made
}

// add counts a charge of a user.
func (p *perUser) add(c *Charge) {
	if c.User == "" || len(p.names) == 0 {
		return
	}
	used := p.of[c.User]
	if used == nil {
		used = make([]int64, len(p.names))
	}
	for i, name := range p.names {
		used[i] = resource.SaturatingAdd(used[i], c.of(name))
	}
	p.keep(c.User, used)
}

// remove stops counting a charge.
func (p *perUser) remove(c *Charge) {
	used := p.of[c.User]
	if used == nil {
		return
	}
	for i, name := range p.names {
		used[i] = resource.SaturatingSub(used[i], c.of(name))
	}
	p.keep(c.User, used)
}

func (p *perUser) keep(user string, used []int64) {
	if slices.ContainsFunc(used, func(n int64) bool { return n != 0 }) {
		p.of[user] = used
		return
	}
	delete(p.of, user)
}

// CountsUsers reports whether a limit of a group counts users one by one: then a unit's
// user decides too whether it is admitted.
func (l *Limits) CountsUsers(group string) bool {
	return slices.ContainsFunc(l.limits[group], func(l *limit) bool { return len(l.users.names) > 0 })
}

// UsedByUsers returns the usage of each user with some, of each resource that the limit
// bounds for each user; nil where there is no such limit.
func (l *Limits) UsedByUsers(group, name string) map[string]resource.Vector {
	at, found := l.find(group, name)
	if !found || len(l.limits[group][at].users.names) == 0 {
		return nil
	}
	users := &l.limits[group][at].users
	all := make(map[string]resource.Vector, len(users.of))
	for user := range maps.Keys(users.of) {
		used := make(resource.Vector, len(users.names))
		for i, name := range users.names {
			used[name] = users.of[user][i]
		}
		all[user] = used
	}
	return all
}
