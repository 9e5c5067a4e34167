package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// getOptions ask for an object as it is now.
var getOptions = sdk.GetOptions{}

func (a *app) quotaGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get [KIND [NAME…]]",
		Short: "Draw quota trees and show the other quotas",
		Long: "get draws every quota tree with what is held, lent, borrowed and free on each node, and shows\n" +
			"bindings and resource quotas beside them: those of all namespaces, or of the one given with -n.\n" +
			"-o wide names the units counted on each node. Kinds: " + strings.Join(plurals(quotaKinds()), ", ") + ".",
		Example: "  muster quota get\n  muster quota get tree company -o wide\n  muster quota get rq -A",
		RunE: func(cmd *cobra.Command, args []string) error {
			k, names, err := parseQuotaTargets(args)
			if err != nil {
				return err
			}
			if err := a.connect(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
			defer cancel()
			switch {
			case k == "":
				return a.overview(ctx)
			case len(names) == 0 && k == quotaTreeKind && a.isTable():
				return a.drawTrees(ctx)
			case len(names) == 0:
				return a.listGroups(ctx, []group{{kind: k}}, getFlags{})
			case k == quotaTreeKind && a.isTable():
				return a.drawNamed(ctx, names)
			}
			return a.getNamed(ctx, k, names)
		},
		ValidArgsFunction: a.completeQuotas,
	}
}

// parseQuotaTargets is parseTargets for quotas, whose kinds may leave "quota"
// out; no arguments are every kind.
func parseQuotaTargets(args []string) (kind, []string, error) {
	if len(args) == 0 {
		return "", nil, nil
	}
	args = slices.Clone(args)
	word, name, combined := strings.Cut(args[0], "/")
	for _, k := range []kind{quotaTreeKind, quotaForestKind, quotaBindingKind} {
		short := strings.TrimPrefix(string(k), "quota")
		if lower := strings.ToLower(word); lower == short || lower == short+"s" {
			word = string(k)
		}
	}
	if args[0] = word; combined {
		args[0] += "/" + name
	}
	if k, err := parseKind(word); err != nil || !k.isQuota() {
		return "", nil, usagef("unknown kind of quota %q: want one of %s", word, strings.Join(plurals(quotaKinds()), ", "))
	}
	return parseTargets(args)
}

func (a *app) quotaDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete KIND NAME…",
		Short:   "Remove quotas; what runs goes on",
		Example: "  muster quota delete tree company\n  muster quota delete rq team -n ml",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, names, err := parseQuotaTargets(args)
			switch {
			case err != nil:
				return err
			case a.allNamespaces:
				return usagef("-A: deleting is done in one namespace")
			case len(names) == 0:
				return usagef("name the %s to delete", k)
			}
			if err := a.connect(); err != nil {
				return err
			}
			var targets []target
			for _, name := range names {
				targets = append(targets, target{k, a.namespace, name})
			}
			return a.deleteAll(cmd.Context(), targets, deletion{})
		},
		ValidArgsFunction: a.completeQuotas,
	}
}

// overview shows everything that is set: pictures of the trees, then tables.
func (a *app) overview(ctx context.Context) error {
	if !a.namespaceGiven {
		a.allNamespaces = true
	}
	found := map[kind][]object{}
	var all []object
	for _, k := range quotaKinds() {
		l, err := a.list(ctx, k, sdk.ListOptions{})
		if err != nil {
			return err
		}
		found[k] = l.objects
		all = append(all, l.objects...)
	}
	if !a.isTable() {
		return a.print(all, genericListOf(all))
	}
	if len(all) == 0 {
		a.notef("no quotas found: everything is admitted that fits; muster quota apply -f FILE sets some\n")
		return nil
	}
	a.draw(found[quotaTreeKind])
	first := len(found[quotaTreeKind]) == 0
	for _, k := range quotaKinds()[1:] {
		if len(found[k]) == 0 {
			continue
		}
		if !first {
			a.printf("\n")
		}
		first = false
		a.tables(found[k])
	}
	return nil
}

func (a *app) drawTrees(ctx context.Context) error {
	l, err := a.list(ctx, quotaTreeKind, sdk.ListOptions{})
	if err != nil {
		return err
	}
	if len(l.objects) == 0 {
		a.notef("no quotatrees found; muster quota apply -f FILE makes one\n")
		return nil
	}
	a.draw(l.objects)
	return nil
}

// drawNamed draws what it finds, then reports the first that is missing.
func (a *app) drawNamed(ctx context.Context, names []string) error {
	var found []object
	var failure error
	for _, name := range names {
		o, err := a.fetch(ctx, quotaTreeKind, "", name, getOptions)
		switch {
		case err == nil:
			found = append(found, o)
		case failure == nil:
			failure = err
		}
	}
	a.draw(found)
	return failure
}

// draw prints the pictures of trees.
func (a *app) draw(trees []object) {
	s := a.style()
	for i, o := range trees {
		if i == 0 {
			a.printf("%s\n", s.paint(dim, legend))
		}
		a.printf("\n%s\n", strings.Join(s.treePicture(as[api.QuotaTree](o), a.output == "wide"), "\n"))
	}
}

// drawResourceQuotas prints resource quotas.
func (a *app) drawResourceQuotas(objects []object) {
	quotas := make([]*api.ResourceQuota, 0, len(objects))
	for _, o := range objects {
		quotas = append(quotas, as[api.ResourceQuota](o))
	}
	for i, line := range a.style().quotaRows(quotas, a.allNamespaces, a.output == "wide") {
		if i > 0 || !a.noHeaders {
			a.printf("%s\n", line)
		}
	}
}

func treeRow(t *api.QuotaTree, now time.Time) []string {
	var over []string
	groups, units := 0, 0
	for _, n := range t.Status.Nodes {
		if len(n.OverQuota) > 0 {
			over = append(over, n.Name)
		}
		if n.Leaf {
			groups++
		}
		units += len(n.Consumers) + n.OtherConsumers
	}
	return []string{
		t.Metadata.Name, t.Status.Root, strconv.Itoa(len(t.Status.Nodes)), strconv.Itoa(groups), strconv.Itoa(units),
		strings.Join(over, ","), strings.Join(t.Status.Dangling, ","), age(t.Metadata.CreationTimestamp, now),
	}
}

func forestRow(f *api.QuotaForest, now time.Time) []string {
	return []string{f.Metadata.Name, strings.Join(f.Spec.Trees, ","), age(f.Metadata.CreationTimestamp, now)}
}

func bindingRow(b *api.QuotaBinding, now time.Time) []string {
	return []string{b.Metadata.Name, groupsOf(b.Spec.Groups), b.Spec.Forest, admissionOf(b), age(b.Metadata.CreationTimestamp, now)}
}

// groupsOf lists groups as "tree/group", in order.
func groupsOf(groups map[string]string) string {
	var pairs []string
	for _, tree := range slices.Sorted(maps.Keys(groups)) {
		pairs = append(pairs, tree+"/"+groups[tree])
	}
	return strings.Join(pairs, ",")
}

func admissionOf(b *api.QuotaBinding) string {
	if b.Spec.Admission == "" {
		return "reject"
	}
	return b.Spec.Admission
}

func (a *app) describeForest(f *api.QuotaForest) {
	a.facts(append(metaFacts(&f.Metadata), "Trees", strings.Join(f.Spec.Trees, ", "))...)
}

func (a *app) describeBinding(b *api.QuotaBinding) {
	a.facts(append(metaFacts(&b.Metadata),
		"Forest", b.Spec.Forest, "Groups", strings.ReplaceAll(groupsOf(b.Spec.Groups), ",", ", "), "Admission", admissionOf(b))...)
}

func (a *app) describeTree(t *api.QuotaTree) {
	a.facts(metaFacts(&t.Metadata)...)
	s := a.style()
	a.printf("\n%s\n\n%s\n", s.paint(dim, legend), strings.Join(s.treePicture(t, true), "\n"))
}

func (a *app) describeResourceQuota(q *api.ResourceQuota) {
	a.facts(append(metaFacts(&q.Metadata), "Applies to", scopesOf(&q.Spec))...)
	a.printf("\n")
	for _, line := range a.style().quotaRows([]*api.ResourceQuota{q}, false, true) {
		a.printf("%s\n", line)
	}
	if len(q.Spec.PerUser) > 0 {
		a.printf("\n")
		t := newTable("USER", "RESOURCE", "USED", "PER USER")
		for _, name := range slices.Sorted(maps.Keys(q.Spec.PerUser)) {
			for _, u := range q.Status.Users {
				t.add(u.User, string(name), human(name, amountOf(name, u.Used)), humanAmount(name, q.Spec.PerUser[name]))
			}
			if len(q.Status.Users) == 0 {
				t.add("-", string(name), "0", humanAmount(name, q.Spec.PerUser[name]))
			}
		}
		t.write(a.Stdout, "")
	}
	a.section("Conditions", conditions(q.Status.Conditions))
}

// scopesOf says which units fall under a quota.
func scopesOf(s *api.ResourceQuotaSpec) string {
	words := slices.Clone(s.Scopes)
	if s.ScopeSelector != nil {
		for _, e := range s.ScopeSelector.MatchExpressions {
			words = append(words, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.ScopeName, e.Operator, strings.Join(e.Values, ","))))
		}
	}
	if len(words) == 0 {
		return "everything in the namespace"
	}
	return strings.Join(words, "; ")
}
