package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// quotaRows draws resource quotas, a row per resource. Namespaces show where
// there may be several; trends, which the answer about one quota has, with wide.
func (s style) quotaRows(quotas []*api.ResourceQuota, namespaced, wide bool) []string {
	heads := []string{"NAME", "RESOURCE", "USED", "HARD", "SOFT", "", "NOTE"}
	if namespaced {
		heads = append([]string{"NAMESPACE"}, heads...)
	}
	var c columns
	c.add(heads...)
	for _, q := range quotas {
		for _, name := range quotaResources(q) {
			hard, soft := q.Spec.Hard[name], q.Spec.Soft[name]
			bar, note := s.quotaBar(q, name)
			if reserved := amountOf(name, q.Status.Reserved); reserved > 0 {
				note = strings.TrimPrefix(note+", "+human(name, reserved)+" reserved", ", ")
			}
			if trend := q.Status.Trend[name]; wide && trend != "" {
				note = strings.TrimPrefix(note+", "+trend, ", ")
			}
			row := []string{q.Metadata.Name, string(name), human(name, amountOf(name, q.Status.Used)), orNone(name, hard), orNone(name, soft), bar, note}
			if namespaced {
				row = append([]string{q.Metadata.Namespace}, row...)
			}
			c.add(row...)
		}
	}
	return c.lines()
}

func orNone(name resource.Name, amount string) string {
	if amount == "" {
		return "-"
	}
	return humanAmount(name, amount)
}

// quotaResources are the resources that a quota limits, in order.
func quotaResources(q *api.ResourceQuota) []resource.Name {
	set := maps.Clone(q.Spec.Hard)
	if set == nil {
		set = map[resource.Name]string{}
	}
	maps.Copy(set, q.Spec.Soft)
	return slices.Sorted(maps.Keys(set))
}

// quotaBar draws the use of one resource up to its limit, with the soft limit
// marked in it, and names the exceeded limits.
func (s style) quotaBar(q *api.ResourceQuota, name resource.Name) (bar, note string) {
	used := amountOf(name, q.Status.Used)
	hard, hasSoft := amountOf(name, q.Spec.Hard), q.Spec.Soft[name] != ""
	soft := amountOf(name, q.Spec.Soft)
	_, hasHard := q.Spec.Hard[name]
	if !hasHard {
		hard = max(soft, used)
	}
	inside := min(used, hard)
	colour := green
	switch {
	case hasHard && used > hard:
		note = s.paint(red, "OVER LIMIT by "+human(name, used-hard))
	case hasSoft && used > soft:
		colour, note = yellow, s.paint(yellow, "over soft by "+human(name, used-soft))
	}
	parts := []part{{inside, heldGlyph, colour}, {max(0, hard-used), freeGlyph, dim}}
	if hasSoft && soft <= hard {
		parts = []part{
			{min(inside, soft), heldGlyph, colour},
			{max(0, soft-inside), freeGlyph, dim},
			{colour: softMark},
			{max(0, inside-soft), heldGlyph, colour},
			{max(0, hard-max(soft, inside)), freeGlyph, dim},
		}
	}
	end := part{colour: limitMark}
	if !hasHard {
		end.colour = " "
	}
	return s.bar(append(parts, end, part{used - inside, overGlyph, red})...), note
}
