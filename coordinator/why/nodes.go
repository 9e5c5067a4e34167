package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// mostGroups bounds the groups of an answer; the smallest groups beyond are one.
const mostGroups = 24

// excluding are the codes of a node that may take no member, whatever is free
// there, with their words. An empty text stands for the reason's own detail, by
// which the nodes are grouped.
var excluding = map[string]string{
	resource.ReasonNodeSelector: "", resource.ReasonNodeAffinity: "", resource.ReasonTaint: "",
	resource.ReasonAffinity: "", resource.ReasonAntiAffinity: "", resource.ReasonSpread: "",
	resource.ReasonCordoned:       "cordoned",
	resource.ReasonUnreachable:    "not ready: no stream to a registered agent",
	resource.ReasonUnregistered:   "not ready: the agent has not registered yet",
	resource.ReasonViolation:      "isolated: the agent broke the protocol",
	resource.ReasonDiskFull:       "disk pressure: the agent's journal or its assignment files have no room",
	resource.ReasonMemoryPressure: "memory pressure: the host is short of memory",
	resource.ReasonQuarantined:    "in quarantine: the store has lost records of what the node holds",
	resource.ReasonBanned:         "banned by an operator",
	resource.ReasonFenced:         "fenced: the agent has to register again",
	resource.ReasonDead:           "confirmed dead",
	resource.ReasonUnread:         "not ready: the leader has not read the agent's registration yet",
	resource.ReasonHostDiffers:    "not ready: the host has more than the agent registered",
	resource.ReasonApproval:       "waits for an operator to approve more hardware",
	resource.ReasonSilent:         "not ready: the agent has not been heard",
}

// group is the nodes that refuse for the same reasons.
type group struct {
	key       string
	excluded  bool
	count     int
	fit       int
	least     []int64 // by reason: the least that a node has
	reasons   []resource.Reason
	names     []resource.NodeID
	different bool // the details of the first reason differ
}

// grouped puts the nodes into groups: first those that may take members, then
// the others, by their number descending.
func grouped(nodes []api.NodeExplanation) []*group {
	found := map[string]*group{}
	var all []*group
	for i := range nodes {
		n := &nodes[i]
		key := keyOf(n.Reasons)
		g := found[key]
		if g == nil {
			g = &group{key: key, excluded: isExcluded(n)}
			found[key] = g
			all = append(all, g)
		}
		g.add(n)
	}
	slices.SortFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.key, b.key))
	})
	return all
}

func isExcluded(n *api.NodeExplanation) bool {
	if len(n.Reasons) == 0 {
		return false
	}
	_, excluded := excluding[n.Reasons[0].Code]
	return excluded
}

// keyOf is equal for nodes of one group: their numbers do not count.
func keyOf(reasons []resource.Reason) string {
	var b strings.Builder
	for _, r := range reasons {
		text, excluded := excluding[r.Code]
		if excluded && text == "" {
			text = r.Detail
		}
		fmt.Fprintf(&b, "%s|%s|%s;", r.Code, r.Resource, text)
	}
	return b.String()
}

func (g *group) add(n *api.NodeExplanation) {
	g.count++
	g.fit += n.Fit
	g.names = append(g.names, n.Node)
	if g.reasons == nil {
		g.reasons = slices.Clone(n.Reasons)
		for _, r := range n.Reasons {
			g.least = append(g.least, r.Have)
		}
		return
	}
	for i, r := range n.Reasons {
		to := &g.reasons[i]
		to.Have, g.least[i] = max(to.Have, r.Have), min(g.least[i], r.Have)
		if to.Detail != r.Detail {
			to.Detail = ""
		}
	}
}

// show makes the groups of an answer, with all names or the first few.
func show(all []*group, f *Facts, everyName bool) []api.NodeGroup {
	list := make([]api.NodeGroup, 0, min(len(all), mostGroups))
	for i, g := range all {
		if i == mostGroups-1 && len(all) > mostGroups {
			list = append(list, rest(all[i:], everyName))
			break
		}
		list = append(list, api.NodeGroup{
			Count: g.count, Fit: g.fit, Message: g.message(f), Reasons: g.reasons, Names: firstNames(g.names, everyName),
		})
	}
	return list
}

// rest is the groups that an answer has no room for.
func rest(all []*group, everyName bool) api.NodeGroup {
	r := api.NodeGroup{Message: fmt.Sprintf("%d other reasons", len(all))}
	var names []resource.NodeID
	for _, g := range all {
		r.Count, r.Fit = r.Count+g.count, r.Fit+g.fit
		names = append(names, g.names...)
	}
	slices.Sort(names)
	r.Names = firstNames(names, everyName)
	return r
}

func firstNames(all []resource.NodeID, every bool) []resource.NodeID {
	if every {
		return all
	}
	return all[:min(listed, len(all))]
}

// message words the reasons of a group.
func (g *group) message(f *Facts) string {
	parts := make([]string, 0, len(g.reasons))
	for i := range g.reasons {
		parts = append(parts, words(&g.reasons[i], g.least[i], &f.Request))
	}
	return strings.Join(parts, "; ")
}

// words says why nodes do not take one more member. least is the least that a
// node of the group has, and the reason's Have the most.
func words(r *resource.Reason, least int64, q *resource.Request) string {
	if text, excluded := excluding[r.Code]; excluded {
		return cmp.Or(text, r.Detail)
	}
	have := amount(r.Resource, r.Have)
	if least != r.Have {
		have = resource.FormatAmount(r.Resource, least) + " to " + have
	}
	want := amount(r.Resource, r.Want)
	switch r.Code {
	case resource.ReasonInsufficient:
		if r.Resource == resource.Pods {
			return "as many members as it takes at once (pods)"
		}
		text := fmt.Sprintf("%s free, a member wants %s", have, want)
		if r.Detail != "" && resource.IsExtended(r.Resource) {
			text += " (" + r.Detail + ")"
		}
		if r.Have == 0 && r.Detail != "" && strings.HasPrefix(string(r.Resource), "hugepages-") {
			text += " (" + r.Detail + ")"
		}
		return text
	case resource.ReasonModel:
		return fmt.Sprintf("%s %s, a member wants %s", have, ofModel(q), want)
	case resource.ReasonUnhealthy:
		return fmt.Sprintf("%s free and healthy, a member wants %s: the other free GPUs are unhealthy", have, want)
	case resource.ReasonFragmented:
		if r.Resource == resource.Cores {
			return fmt.Sprintf("%s free, a member wants %s: the other CPUs are free in cores that others use in part", have, want)
		}
		return fmt.Sprintf("%s free as a member can use them, a member wants %s: enough is free in all, in parts of several GPUs", have, want)
	case resource.ReasonLink:
		return fmt.Sprintf("%s free with every pair connected by %s, a member wants %s so connected", have, q.Link, want)
	case resource.ReasonNUMA:
		return fmt.Sprintf("enough is free in all, but not on as few NUMA nodes as the policy %s allows", q.NUMA)
	}
	if r.Resource != "" {
		return fmt.Sprintf("%s: %s there, a member wants %s", r.Code, have, want)
	}
	if r.Detail != "" {
		return r.Detail
	}
	return r.Code
}

// ofModel says which devices a request asks for.
func ofModel(q *resource.Request) string {
	var parts []string
	if q.MIG > 0 {
		parts = append(parts, "of profile "+q.MIGProfile)
	}
	if q.GPUModel != "" {
		parts = append(parts, "of model "+q.GPUModel)
	}
	if q.GPUMemory > 0 {
		parts = append(parts, "with at least "+resource.FormatBytes(q.GPUMemory)+" of memory each")
	}
	return strings.Join(parts, " ")
}
