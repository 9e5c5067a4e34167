package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// The glyphs of a node's bar.
const (
	heldGlyph     = "█" // by groups on their own quota
	sharedGlyph   = "▓" // by borrowers that are counted on this inner node
	lentGlyph     = "▒" // the node's, used by others further up
	freeGlyph     = "·"
	overGlyph     = "!" // held beyond the quota
	borrowedGlyph = "░" // held by groups of this node further up
	limitMark     = "|"
	softMark      = "¦"
)

// legend explains the bars of trees.
const legend = heldGlyph + " held  " + sharedGlyph + " held by borrowers  " + lentGlyph + " lent  " + freeGlyph + " free  " +
	limitMark + " quota  " + borrowedGlyph + " borrowed above  " + overGlyph + " over quota"

// nameWidth bounds the column of node names, so that a picture has 100 columns.
const nameWidth = 24

// treePicture draws a tree, one line per node and resource. With consumers it
// names the consumers that are counted on each node.
func (s style) treePicture(t *api.QuotaTree, consumers bool) []string {
	nodes := t.Status.Nodes
	lines := []string{s.paint(bold, "Tree "+t.Metadata.Name) + ": " + treeSummary(nodes)}
	trunks := trunksOf(nodes)
	names := resourcesOf(nodes)
	var c columns
	for i := range nodes {
		n := &nodes[i]
		title := trunks[i].head + n.Name
		if n.Hard && n.Parent != "" {
			title += " (hard)"
		}
		title = clip(title, nameWidth)
		if len(n.OverQuota) > 0 {
			title = s.paint(red, title)
		}
		for k, name := range names {
			if k > 0 {
				title = trunks[i].more
			}
			bar, amounts, notes := s.nodeLine(n, name)
			c.add(title, string(name), bar, amounts, notes)
		}
		if names := consumersOf(n); consumers && len(names) > 0 {
			c.add(trunks[i].more + "  " + s.paint(dim, strings.Join(names, " ")))
		}
	}
	lines = append(lines, c.lines()...)
	return append(lines, s.shapeLines(&t.Status)...)
}

// consumersOf are the units that are counted at a node, those of other tenants as a
// number.
func consumersOf(n *api.QuotaNodeStatus) []string {
	if n.OtherConsumers == 0 {
		return n.Consumers
	}
	return append(slices.Clone(n.Consumers), fmt.Sprintf("and %d of other tenants", n.OtherConsumers))
}

func treeSummary(nodes []api.QuotaNodeStatus) string {
	if len(nodes) == 0 {
		return "empty, so nothing is admitted on it"
	}
	leaves, units := 0, 0
	for _, n := range nodes {
		if n.Leaf {
			leaves++
		}
		units += len(n.Consumers) + n.OtherConsumers
	}
	return fmt.Sprintf("%s, %s, %s charged", plural(strconv.Itoa(len(nodes)), "node"), plural(strconv.Itoa(leaves), "group"), plural(strconv.Itoa(units), "unit"))
}

// trunk is the text before a node's name, and before its other lines.
type trunk struct{ head, more string }

// trunksOf draws the branches of nodes in depth-first order.
func trunksOf(nodes []api.QuotaNodeStatus) []trunk {
	trunks := make([]trunk, len(nodes))
	open := map[int]bool{} // depths at which a sibling follows
	for i := len(nodes) - 1; i >= 0; i-- {
		depth := nodes[i].Depth
		hasChild := i+1 < len(nodes) && nodes[i+1].Depth > depth
		var before strings.Builder
		for d := 1; d < depth; d++ {
			before.WriteString(branch(open[d], "│  ", "   "))
		}
		t := trunk{more: before.String()}
		if depth > 0 {
			t.head = before.String() + branch(open[depth], "├─ ", "└─ ")
			t.more += branch(open[depth], "│  ", "   ")
		}
		t.more += branch(hasChild, "│", "")
		trunks[i] = t
		for d := range maps.Clone(open) {
			if d > depth {
				delete(open, d)
			}
		}
		open[depth] = true
	}
	return trunks
}

func branch(yes bool, this, that string) string {
	if yes {
		return this
	}
	return that
}

// resourcesOf are the resources that any node names, in order.
func resourcesOf(nodes []api.QuotaNodeStatus) []resource.Name {
	set := map[resource.Name]bool{}
	for _, n := range nodes {
		for _, m := range []map[resource.Name]string{n.Quota, n.Allocated, n.Borrowed} {
			for name := range m {
				set[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// nodeLine draws a node's amounts of one resource.
func (s style) nodeLine(n *api.QuotaNodeStatus, name resource.Name) (bar, amounts, notes string) {
	quota, allocated := amountOf(name, n.Quota), amountOf(name, n.Allocated)
	lent, borrowed := amountOf(name, n.Lent), amountOf(name, n.Borrowed)
	own, over := int64(0), max(0, allocated-quota)
	if !n.Leaf {
		own = min(amountOf(name, n.Own), allocated)
	}
	inside := allocated - over // the part that the quota covers
	shared := min(own, inside)
	free := max(0, quota-allocated-lent)
	mark := limitMark
	if quota == resource.Unlimited {
		free, mark = max(1, allocated), " "
	}
	bar = s.bar(part{inside - shared, heldGlyph, green}, part{shared, sharedGlyph, cyan}, part{lent, lentGlyph, yellow}, part{free, freeGlyph, dim},
		part{colour: mark}, part{over, overGlyph, red}, part{borrowed, borrowedGlyph, cyan})
	var says []string
	say := func(amount int64, format string) {
		if amount > 0 {
			says = append(says, fmt.Sprintf(format, human(name, amount)))
		}
	}
	say(own, "%s by borrowers")
	say(lent, "lends %s")
	say(borrowed, "borrows %s")
	if over > 0 {
		says = append(says, s.paint(red, "OVER QUOTA by "+human(name, over)))
	}
	return bar, human(name, allocated) + " of " + human(name, quota), strings.Join(says, ", ")
}

// amountOf reads an amount of a status; an absent amount is 0.
func amountOf(name resource.Name, m map[resource.Name]string) int64 {
	text := m[name]
	if text == "" {
		return 0
	}
	if text == resource.FormatAmount(name, resource.Unlimited) {
		return resource.Unlimited
	}
	v, err := resource.ParseAmount(name, text)
	if err != nil {
		return 0 // a newer server's way of writing; the JSON has it
	}
	return v
}

// human prints an amount for people.
func human(name resource.Name, amount int64) string {
	return humanAmount(name, resource.FormatAmount(name, amount))
}

// shapeLines name the parts of a tree that are not in force.
func (s style) shapeLines(t *api.QuotaTreeStatus) []string {
	var lines []string
	for _, fault := range treeFaults(t) {
		lines = append(lines, s.paint(yellow, "warning: ")+fault)
	}
	return lines
}

// treeFaults words the faults of a tree's shape, with the remedies.
func treeFaults(t *api.QuotaTreeStatus) []string {
	var faults []string
	say := func(names []string, format string) {
		if len(names) > 0 {
			faults = append(faults, fmt.Sprintf(format, strings.Join(names, ", ")))
		}
	}
	say(t.OtherRoots, "further roots, not in force: %s; only "+t.Root+" is the root, so give them a parent")
	say(t.Orphans, "nodes whose parent does not exist: %s; correct their parent")
	say(t.Cyclic, "nodes that are their own ancestors: %s; correct their parents")
	say(t.Dangling, "not part of the tree: %s")
	detached := t.Detached
	if t.OtherDetached > 0 {
		detached = append(slices.Clone(detached), fmt.Sprintf("and %d of other tenants", t.OtherDetached))
	}
	say(detached, "units whose group is no leaf any more: %s; they stay charged until they end, and move to no other node")
	return faults
}
