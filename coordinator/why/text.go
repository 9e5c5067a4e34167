package why

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
)

// Text prints an answer for people, in its order: where the object stands, the
// reason, whether it can ever run, what would help, the nodes by reason.
func Text(e *api.Explanation) string { return strings.Join(lines(e), "\n") + "\n" }

// Bounded is Text in at most so many bytes, as whole lines: the last lines give
// way first, and a line says how many are missing.
func Bounded(e *api.Explanation, most int) string {
	all := lines(e)
	for keep := len(all); keep > 0; keep-- {
		text := strings.Join(all[:keep], "\n")
		if keep < len(all) {
			text += fmt.Sprintf("\n… %s more: muster why %s", plural(fmt.Sprint(len(all)-keep), "line"), reference(e))
		}
		if len(text) <= most {
			return text
		}
	}
	return strings.ToValidUTF8(all[0][:min(most, len(all[0]))], "")
}

// reference is how an object is named on the command line, whatever namespace the
// reader's context has.
func reference(e *api.Explanation) string {
	return strings.ToLower(e.Object) + "/" + e.Name + " -n " + e.Namespace
}

func lines(e *api.Explanation) []string {
	all := []string{head(e), e.Summary}
	if len(e.Placement) > 0 {
		nodes := make([]string, len(e.Placement))
		for i, m := range e.Placement {
			nodes[i] = string(m.Node)
		}
		with := ""
		if e.Alternative > 0 {
			with = fmt.Sprintf(" with alternative %d", e.Alternative)
		}
		all = append(all, "It would be placed on "+names(nodes)+with+".")
	}
	for _, a := range e.Alternatives {
		all = append(all, fmt.Sprintf("Alternative %d, %s: %s.", a.Number, a.Request, a.Reason.Detail))
	}
	if e.Outlook != nil {
		message := e.Outlook.Message
		if e.DryRun && e.Outlook.Can == api.CanNever {
			message += " It would wait until a node or a quota changes that."
		}
		all = append(all, message)
	}
	if len(e.Help) > 0 {
		all = append(all, "What would help, as tried on a copy of the cluster:")
		for _, h := range e.Help {
			all = append(all, "  - "+h.Message)
		}
	}
	if n := len(e.Quota); n > 1 {
		all = append(all, "Quota that is short:")
		for _, r := range e.Quota {
			all = append(all, "  - "+r.Detail)
		}
	}
	if len(e.Nodes) > 0 && len(e.Placement) == 0 { // nothing is short where there is a placement
		all = append(all, "Nodes:")
		for i := range e.Nodes {
			all = append(all, "  "+nodesLine(&e.Nodes[i]))
		}
	}
	return all
}

// head says where the object stands.
func head(e *api.Explanation) string {
	text := fmt.Sprintf("%s %s/%s is %s", e.Object, e.Namespace, e.Name, e.Phase)
	if e.DryRun {
		text = fmt.Sprintf("%s %s/%s was not submitted (dry run)", e.Object, e.Namespace, e.Name)
	}
	if q := e.Queue; q != nil {
		text += fmt.Sprintf(", position %d of %d in queue %s, %d of %d over all queues", q.Position, q.Length, q.Name, q.OverallPosition, q.OverallLength)
	}
	return text
}

// nodesLine is one group of nodes.
func nodesLine(g *api.NodeGroup) string {
	message := g.Message
	if message == "" {
		message = "room for more than the unit needs"
	}
	text := fmt.Sprintf("%s: %s", count(g.Count, "node"), message)
	if g.Fit > 0 {
		text += fmt.Sprintf(" (%s would fit)", count(g.Fit, "member"))
	}
	more := ""
	if n := g.Count - len(g.Names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	shown := make([]string, len(g.Names))
	for i, n := range g.Names {
		shown[i] = string(n)
	}
	return text + "\n      " + strings.Join(shown, ", ") + more
}
