package events

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/resource"
)

// Quota is a resource quota: its limits and their use.
type Quota struct {
	Created          string // RFC 3339
	Hard, Soft, Used resource.Vector
	Scopes           string // in any form that is the same for the same scopes
}

// OfQuota returns the events of a change of a resource quota: before is nil for a
// quota that is new, after for a quota that is gone.
func OfQuota(before, after *Quota) (all []Happening) {
	switch {
	case after == nil:
		return []Happening{normal("Deleted", "", "the quota limits nothing any more")}
	case before == nil:
		before = new(Quota)
		all = append(all, normal("Created", after.Created, "the quota limits %s", cmp.Or(limits(after.Hard), limits(after.Soft), "nothing")))
	default:
		changed := []string{changes("", before.Hard, after.Hard), changes("soft ", before.Soft, after.Soft)}
		if before.Scopes != after.Scopes {
			changed = append(changed, "other scopes")
		}
		changed = slices.DeleteFunc(changed, func(s string) bool { return s == "" })
		if len(changed) > 0 {
			all = append(all, normal("LimitsChanged", "", "%s", strings.Join(changed, ", ")))
		}
	}
	all = append(all, crossings("OverQuota", "WithinQuota", "the limit is", before.Used, before.Hard, after.Used, after.Hard)...)
	return append(all, crossings("OverSoftLimit", "WithinSoftLimit", "the soft limit is", before.Used, before.Soft, after.Used, after.Soft)...)
}

// limits lists amounts.
func limits(v resource.Vector) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, string(name)+" "+resource.FormatAmount(name, v[name]))
	}
	return strings.Join(parts, ", ")
}

// changes lists the limits that are not the same.
func changes(kind string, was, is resource.Vector) string {
	text := func(v resource.Vector) map[resource.Name]string {
		all := map[resource.Name]string{}
		for name, amount := range v {
			all[resource.Name(kind)+name] = resource.FormatAmount(name, amount)
		}
		return all
	}
	if maps.Equal(was, is) {
		return ""
	}
	return differences(text(was), text(is))
}

// crossings are the events of resources whose use has gone beyond a limit, or back
// within it.
func crossings(beyond, within, limit string, usedBefore, limitBefore, usedNow, limitNow resource.Vector) []Happening {
	var over, back []string
	for _, name := range slices.Sorted(maps.Keys(limitNow)) {
		before, limited := limitBefore[name]
		was, is := limited && usedBefore[name] > before, usedNow[name] > limitNow[name]
		text := func() string {
			return fmt.Sprintf("%s %s are used, %s %s", resource.FormatAmount(name, usedNow[name]), name, limit, resource.FormatAmount(name, limitNow[name]))
		}
		switch {
		case is && !was:
			over = append(over, text())
		case was && !is:
			back = append(back, text())
		}
	}
	var all []Happening
	if over != nil {
		all = append(all, warning(beyond, "", "%s", strings.Join(over, "; ")).latest())
	}
	if back != nil {
		all = append(all, normal(within, "", "%s", strings.Join(back, "; ")).latest())
	}
	return all
}
