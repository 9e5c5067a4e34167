package quota

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/resource"
)

// Check recomputes every usage from the live charges and names the first limit
// that differs.
func (l *Limits) Check() error {
	for _, g := range slices.Sorted(maps.Keys(l.limits)) {
		for _, limit := range l.limits[g] {
			if err := l.checkLimit(g, limit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Limits) checkLimit(group string, limit *limit) error {
	users := newPerUser(limit.PerUser)
	used := make([]int64, len(limit.names))
	for _, c := range l.live {
		if c.Group != group || !limit.counts(&c.Charge) {
			continue
		}
		users.add(&c.Charge)
		for i, name := range limit.names {
			used[i] = resource.SaturatingAdd(used[i], c.of(name))
		}
	}
	for i, name := range limit.names {
		if limit.used[i] != used[i] {
			return fmt.Errorf("quota: limit %s of %s counts %d of %s, the charges sum to %d", limit.Name, group, limit.used[i], name, used[i])
		}
	}
	for _, user := range slices.Sorted(maps.Keys(users.of)) {
		if !slices.Equal(limit.users.of[user], users.of[user]) {
			return fmt.Errorf("quota: limit %s of %s counts %v of %v of user %q, the charges sum to %v", limit.Name, group, limit.users.of[user], users.names, user, users.of[user])
		}
	}
	if len(users.of) != len(limit.users.of) {
		return fmt.Errorf("quota: limit %s of %s counts %d users, the charges are of %d", limit.Name, group, len(limit.users.of), len(users.of))
	}
	return nil
}
