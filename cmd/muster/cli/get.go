package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// listTimeout bounds a list, which may have many pages.
const listTimeout = 5 * time.Minute

// completionTimeout keeps a shell from hanging on a server that is not there.
const completionTimeout = time.Second

// listing is the objects of one kind in natural order, and the list's own
// metadata.
type listing struct {
	kind    kind
	meta    api.ListMeta
	objects []object
}

// list gets all objects of a kind, in the namespaces asked for.
func (a *app) list(ctx context.Context, k kind, o sdk.ListOptions) (listing, error) {
	got, err := a.at(k, a.listNamespace()).List(ctx, o)
	if err != nil {
		return listing{}, err
	}
	l := listing{kind: k, meta: got.Meta, objects: make([]object, len(got.Items))}
	for i, item := range got.Items {
		l.objects[i] = object{Object: item}
	}
	if k == eventKind {
		sortByTime(l.objects)
		return l, nil
	}
	sortByName(l.objects)
	return l, nil
}

// listDocument is a list as it is encoded.
type listDocument struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   api.ListMeta `json:"metadata"`
	Items      []any        `json:"items"`
}

func (l listing) document() listDocument {
	return listDocument{APIVersion: api.APIVersion, Kind: l.kind.client().Document + "List", Metadata: l.meta, Items: documentsOf(l.objects)}
}

func documentsOf(objects []object) []any {
	items := make([]any, 0, len(objects))
	for _, o := range objects {
		items = append(items, o.document())
	}
	return items
}

// getFlags are the flags of get.
type getFlags struct {
	list           sdk.ListOptions
	limit          limit
	ignoreNotFound bool
	about          forObject
	origin         string
	watchFlags
}

func (a *app) getCommand() *cobra.Command {
	var f getFlags
	cmd := &cobra.Command{
		Use:   "get KIND[,KIND…] [NAME…] | KIND/NAME…",
		Short: "Show allocations, jobs, nodes or quotas",
		Long: "get shows objects. For allocations, CPUS and GPUS are how much is granted and, in brackets,\n" +
			"exactly which; for nodes, CPUS, MEMORY and GPUS are what is free of what can be allocated.\n" +
			"Kinds: " + strings.Join(plurals(allKinds()), ", ") + "; all is jobs and allocations.\n" +
			"Short: " + shorts() + ".\n\n" +
			"-o jsonpath='{…}' and custom-columns=HEAD:.path,… are those of kubectl. Objects are shown by\n" +
			"namespace and name, numbers in names by value, unless --sort-by says otherwise.\n\n" +
			"-w goes on with each change, in the order in which they happen: of " + watchedKinds() + ".\n" +
			"Where a coordinator of several (--addr) stops, the next one goes on, and no change is lost.",
		Example: "  muster get allocations -A -o wide\n  muster get jobs,allocations -l team=ml\n" +
			"  muster get node n1 -o json\n  muster get job/train node/n1\n  muster get rq -A\n" +
			"  muster get allocations -w\n  muster get jobs -A --watch-only -o name\n" +
			"  muster get events --for job/train -w\n" +
			"  muster get allocations --origin kubelet\n" +
			"  muster get nodes --sort-by=.status.available.cpu\n" +
			"  muster get jobs -o custom-columns=NAME:.metadata.name,PHASE:.status.phase --no-headers\n" +
			"  muster get allocation train-0 -o jsonpath='{.status.assignment.gpus[*].uuid}'",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			groups, err := parseGroups(args)
			if err != nil {
				return err
			}
			f.list.Limit, a.severalKinds = int(f.limit), len(groups) > 1
			if err := f.checkOrigin(a, groups, cmd.Flags().Changed("namespace")); err != nil {
				return err
			}
			if f.about.name != "" && (len(groups) > 1 || groups[0].kind != eventKind) {
				return usagef("--for is for events: muster get events --for %s", &f.about)
			}
			f.list.FieldSelector = f.about.selector(f.list.FieldSelector)
			if f.about.name != "" && !kind(f.about.kind).namespaced() {
				a.outside = true // events of nodes are in no namespace
			}
			if len(groups[0].names) > 0 && (a.allNamespaces || f.list != (sdk.ListOptions{})) {
				return usagef("a name and -A, -l, --field-selector or --limit exclude each other")
			}
			if err := f.check(groups, f.list, a.sortBy.path != nil); err != nil {
				return err
			}
			if err := a.connect(); err != nil {
				return err
			}
			if f.origin != "" {
				ctx, cancel := context.WithTimeout(cmd.Context(), listTimeout)
				defer cancel()
				return a.kubeletGrants(ctx)
			}
			if f.on() {
				f.awaited = f.ignoreNotFound
				return a.watch(cmd.Context(), groups[0], f.list, f.watchFlags)
			}
			if len(groups[0].names) > 0 {
				ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
				defer cancel()
				return a.getGroups(ctx, groups, f.ignoreNotFound)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), listTimeout)
			defer cancel()
			return a.listGroups(ctx, groups, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.list.LabelSelector, "selector", "l", "", "labels to match, e.g. app=x,tier!=y,zone in (a,b)")
	flags.BoolVar(&a.showLabels, "show-labels", false, "show labels as the last column")
	flags.BoolVar(&a.noHeaders, "no-headers", false, "leave the heads of tables out")
	flags.Var(&a.sortBy, "sort-by", "order by a field, e.g. .status.phase or '{.spec.priority}'")
	flags.StringVar(&f.list.FieldSelector, "field-selector", "", "fields to match, e.g. status.phase=Running")
	flags.Var(&f.about, "for", "show the events of one object, e.g. job/train")
	flags.StringVar(&f.origin, "origin", "", "kubelet: show the devices that kubelets hand out to pods, of all nodes, instead of Muster's own allocations")
	flags.Var(&f.limit, "limit", "show at most this many (0 = all)")
	flags.BoolVar(&f.ignoreNotFound, "ignore-not-found", false, "end with 0 where a name, or everything, is not found; with -w: await it")
	flags.BoolVarP(&f.watch, "watch", "w", false, "then show each change, until it is interrupted")
	flags.BoolVar(&f.only, "watch-only", false, "show the changes alone, and not what is there")
	flags.BoolVar(&f.events, "output-watch-events", false, "show with each change whether the object was ADDED, MODIFIED or DELETED")
	return cmd
}

// getNamed shows objects of one kind by their names.
func (a *app) getNamed(ctx context.Context, k kind, names []string) error {
	return a.getGroups(ctx, []group{{kind: k, names: names}}, false)
}

// getGroups shows the objects that it finds, then reports the first that is
// missing.
func (a *app) getGroups(ctx context.Context, groups []group, ignoreNotFound bool) error {
	var found []object
	var failure error
	for _, g := range groups {
		for _, name := range g.names {
			o, err := a.fetch(ctx, g.kind, a.namespace, name, sdk.GetOptions{})
			switch {
			case err == nil:
				found = append(found, o)
			case failure == nil && (!ignoreNotFound || !isNotFound(err)):
				failure = err
			}
		}
	}
	if len(found) == 0 {
		return failure
	}
	found, err := a.sorted(found)
	if err != nil {
		return errors.Join(err, failure)
	}
	if err := a.print(found, listOf(found)); err != nil {
		return err
	}
	return failure
}

// listGroups shows all objects of some kinds.
func (a *app) listGroups(ctx context.Context, groups []group, f getFlags) error {
	var all []object
	var lists []listing
	for _, g := range groups {
		l, err := a.list(ctx, g.kind, f.list)
		if err != nil {
			return err
		}
		if l.objects, err = a.sorted(l.objects); err != nil {
			return err
		}
		all, lists = append(all, l.objects...), append(lists, l)
	}
	switch {
	case len(all) == 0 && a.isTable():
		if !f.ignoreNotFound {
			a.notef("no %s found%s\n", plainList(groups), a.whereOf(groups))
		}
		return nil
	case len(lists) == 1:
		return a.print(all, lists[0].document())
	}
	return a.print(all, genericListOf(all))
}

// plainList is the plurals of kinds in words.
func plainList(groups []group) string {
	var words []string
	for _, g := range groups {
		words = append(words, g.kind.plural())
	}
	if last := len(words) - 1; last > 0 {
		return strings.Join(words[:last], ", ") + " or " + words[last]
	}
	return words[0]
}

// whereOf names the namespace that was searched, if it was one.
func (a *app) whereOf(groups []group) string {
	for _, g := range groups {
		if g.kind.namespaced() && !a.allNamespaces && !a.outside {
			return fmt.Sprintf(" in namespace %q", a.namespace)
		}
	}
	return ""
}

// listOf is the document for several objects, or the one itself.
func listOf(objects []object) any {
	if len(objects) == 1 {
		return objects[0].document()
	}
	return genericListOf(objects)
}

func genericListOf(objects []object) genericList {
	return genericList{Kind: "List", APIVersion: api.APIVersion, Items: documentsOf(objects)}
}

// genericList holds objects of any kind, as kubectl prints them.
type genericList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []any  `json:"items"`
}
