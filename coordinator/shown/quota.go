package shown

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// Versioned is an object as the store has it.
type Versioned[T any] struct {
	Object   T
	Revision resource.Revision
}

// Copy is the object for a caller. What it points to is never changed.
func (v Versioned[T]) Copy() *T { return &v.Object }

// List is the list of objects, in the order in which they come.
func List[T any](floor resource.Revision, all iter.Seq[Versioned[T]]) ([]T, api.ListMeta) {
	newest := floor
	items := []T{}
	for v := range all {
		items = append(items, v.Object)
		newest = max(newest, v.Revision)
	}
	return items, ListMeta(newest)
}

// ListMeta is the metadata of a list at a revision.
func ListMeta(rev resource.Revision) api.ListMeta {
	return api.ListMeta{ResourceVersion: strconv.FormatInt(int64(rev), 10)}
}

// ResourceQuota is a resource quota with its limits and what is used of them, in
// base units.
type ResourceQuota struct {
	Versioned[api.ResourceQuota]
	Hard, Soft, Used resource.Vector
	// Reserved is the part of Used whose units have not started.
	Reserved resource.Vector
	// Users are the amounts of each user that the quota counts one by one.
	Users map[string]resource.Vector
	// Utilization is Utilization(Used, Hard).
	Utilization map[resource.Name]int64
}

// Show shows a quota with what is used of it. The limits of resources that are
// not handed out have no status.
func (q *ResourceQuota) Show() *api.ResourceQuota {
	o := q.Object
	o.Status = api.ResourceQuotaStatus{
		Hard: Quantities(q.Hard), Used: Quantities(q.Used), Reserved: someOf(q.Reserved), Utilization: map[resource.Name]string{},
	}
	for _, user := range slices.Sorted(maps.Keys(q.Users)) {
		o.Status.Users = append(o.Status.Users, api.UserUsage{User: user, Used: Quantities(q.Users[user])})
	}
	for name, p := range q.Utilization {
		o.Status.Utilization[name] = fmt.Sprintf("%d%%", p)
	}
	for _, about := range []struct {
		condition, reason, message string
		limit                      resource.Vector
	}{
		{"SoftExceeded", "AboveSoftLimit", "above the soft limit", q.Soft},
		{"OverLimit", "AboveHardLimit", "above the hard limit: nothing new is admitted, nothing that runs is ended", q.Hard},
	} {
		if over := Exceeded(q.Used, about.limit); len(over) > 0 {
			o.Status.Conditions = append(o.Status.Conditions, api.Condition{
				Type: about.condition, Status: "True", Reason: about.reason, Message: about.message + ": " + amountsOver(over, q.Used, about.limit),
			})
		}
	}
	return &o
}

// ListResourceQuotas is the list of quotas, by namespace and name.
func ListResourceQuotas(floor resource.Revision, all iter.Seq[ResourceQuota]) *api.ResourceQuotaList {
	list := &api.ResourceQuotaList{Kind: "ResourceQuotaList", Items: []api.ResourceQuota{}}
	newest := floor
	for q := range all {
		list.Items = append(list.Items, *q.Show())
		newest = max(newest, q.Revision)
	}
	slices.SortFunc(list.Items, func(a, b api.ResourceQuota) int { return byName(a.Metadata, b.Metadata) })
	list.Metadata = ListMeta(newest)
	return list
}

// byName orders objects of all namespaces.
func byName(a, b api.ObjectMeta) int {
	if a.Namespace != b.Namespace {
		return strings.Compare(a.Namespace, b.Namespace)
	}
	return strings.Compare(a.Name, b.Name)
}

// Utilization is what is used of hard limits, in whole percent; a limit of zero
// has none.
func Utilization(used, hard resource.Vector) map[resource.Name]int64 {
	percent := map[resource.Name]int64{}
	for name, limit := range hard {
		if limit > 0 {
			percent[name] = percentOf(used[name], limit)
		}
	}
	return percent
}

// percentOf is 100·used/hard, rounded down, for any amounts; hard > 0.
func percentOf(used, hard int64) int64 {
	if used > (1<<63-1)/100 {
		return used / max(1, hard/100)
	}
	return 100 * used / hard
}

// Exceeded names the resources of which more is used than the limit.
func Exceeded(used, limit resource.Vector) []resource.Name {
	var over []resource.Name
	for _, name := range limit.Names() {
		if used[name] > limit[name] {
			over = append(over, name)
		}
	}
	return over
}

// amountsOver lists e.g. "cpu 12 of 10, memory 3Gi of 2Gi".
func amountsOver(over []resource.Name, used, limit resource.Vector) string {
	parts := make([]string, len(over))
	for i, name := range over {
		parts[i] = fmt.Sprintf("%s %s of %s", name, resource.FormatAmount(name, used[name]), resource.FormatAmount(name, limit[name]))
	}
	return strings.Join(parts, ", ")
}

// Quantities prints every amount of a vector, zeros too.
func Quantities(v resource.Vector) map[resource.Name]string {
	out := make(map[resource.Name]string, len(v))
	for name, amount := range v {
		out[name] = resource.FormatAmount(name, amount)
	}
	return out
}

// someOf prints the amounts of a vector that are not zero; nil where all are.
func someOf(v resource.Vector) map[resource.Name]string {
	var out map[resource.Name]string
	for name, amount := range v {
		if amount != 0 {
			if out == nil {
				out = map[resource.Name]string{}
			}
			out[name] = resource.FormatAmount(name, amount)
		}
	}
	return out
}
