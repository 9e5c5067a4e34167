package cli

import (
	"context"
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

// listing is a list as it came, and its objects one by one.
type listing struct {
	document any // *api.AllocationList and so on
	objects  []object
}

// list gets all objects of a kind, in the namespaces asked for.
func (a *app) list(ctx context.Context, k kind, o sdk.ListOptions) (listing, error) {
	var l listing
	switch k {
	case allocationKind:
		got, err := a.client.Allocations(a.listNamespace()).List(ctx, o)
		if err != nil {
			return l, err
		}
		l.document = got
		for i := range got.Items {
			l.objects = append(l.objects, object{allocation: &got.Items[i]})
		}
	case jobKind:
		got, err := a.client.Jobs(a.listNamespace()).List(ctx, o)
		if err != nil {
			return l, err
		}
		l.document = got
		for i := range got.Items {
			l.objects = append(l.objects, object{job: &got.Items[i]})
		}
	case nodeKind:
		got, err := a.client.Nodes().List(ctx, o)
		if err != nil {
			return l, err
		}
		l.document = got
		for i := range got.Items {
			l.objects = append(l.objects, object{node: &got.Items[i]})
		}
	default:
		return a.listQuotas(ctx, k, o)
	}
	return l, nil
}

// listQuotas is list for the kinds of quota.
func (a *app) listQuotas(ctx context.Context, k kind, o sdk.ListOptions) (listing, error) {
	var l listing
	switch k {
	case resourceQuotaKind:
		got, err := a.client.ResourceQuotas(a.listNamespace()).List(ctx, o)
		if err != nil {
			return l, err
		}
		l.document = got
		for i := range got.Items {
			l.objects = append(l.objects, object{quota: &got.Items[i]})
		}
	case quotaTreeKind:
		got, err := a.client.QuotaTrees().List(ctx, o)
		if err != nil {
			return l, err
		}
		l.document = got
		for i := range got.Items {
			l.objects = append(l.objects, object{tree: &got.Items[i]})
		}
	case quotaForestKind:
		got, err := a.client.QuotaForests().List(ctx, o)
		if err != nil {
			return l, err
		}
		l.document = got
		for i := range got.Items {
			l.objects = append(l.objects, object{forest: &got.Items[i]})
		}
	case quotaBindingKind:
		got, err := a.client.QuotaBindings().List(ctx, o)
		if err != nil {
			return l, err
		}
		l.document = got
		for i := range got.Items {
			l.objects = append(l.objects, object{binding: &got.Items[i]})
		}
	}
	return l, nil
}

func (a *app) getCommand() *cobra.Command {
	var o sdk.ListOptions
	cmd := &cobra.Command{
		Use:   "get KIND [NAME…]",
		Short: "Show allocations, jobs, nodes or quotas",
		Long: "get shows objects. For allocations, CPUS and GPUS are how much is granted and, in brackets,\n" +
			"exactly which; for nodes, CPUS, MEMORY and GPUS are what is free of what can be allocated.\n" +
			"Kinds: " + strings.Join(plurals(kinds), ", ") + "; rq, qt, qf and qb are short for the last four.",
		Example: "  muster get allocations -A -o wide\n  muster get jobs -l team=ml\n" +
			"  muster get node n1 -o json\n  muster get job/train\n  muster get rq -A",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, names, err := parseTargets(args)
			if err != nil {
				return err
			}
			if len(names) > 0 && (a.allNamespaces || o != (sdk.ListOptions{})) {
				return usagef("a name and -A, -l, --field-selector or --limit exclude each other")
			}
			if err := a.connect(); err != nil {
				return err
			}
			if len(names) > 0 {
				ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
				defer cancel()
				return a.getNamed(ctx, k, names)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), listTimeout)
			defer cancel()
			return a.getAll(ctx, k, o)
		},
	}
	cmd.Flags().StringVarP(&o.LabelSelector, "selector", "l", "", "labels to match, e.g. app=x,tier!=y,zone in (a,b)")
	cmd.Flags().BoolVar(&a.showLabels, "show-labels", false, "show labels as the last column")
	cmd.Flags().StringVar(&o.FieldSelector, "field-selector", "", "fields to match, e.g. status.phase=Running")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "show at most this many (0 = all)")
	return cmd
}

// getNamed shows what it finds, then reports the first that is missing.
func (a *app) getNamed(ctx context.Context, k kind, names []string) error {
	var found []object
	var failure error
	for _, name := range names {
		o, err := a.fetch(ctx, k, a.namespace, name, sdk.GetOptions{})
		switch {
		case err == nil:
			found = append(found, o)
		case failure == nil:
			failure = err
		}
	}
	if len(found) == 0 {
		return failure
	}
	if err := a.print(found, listOf(found)); err != nil {
		return err
	}
	return failure
}

func (a *app) getAll(ctx context.Context, k kind, o sdk.ListOptions) error {
	l, err := a.list(ctx, k, o)
	if err != nil {
		return err
	}
	if len(l.objects) == 0 && a.isTable() {
		where := ""
		if k.namespaced() {
			where = fmt.Sprintf(" in namespace %q", a.namespace)
			if a.allNamespaces {
				where = ""
			}
		}
		a.notef("no %ss found%s\n", k, where)
		return nil
	}
	return a.print(l.objects, l.document)
}

// listOf is the document for several objects, or the one itself.
func listOf(objects []object) any {
	if len(objects) == 1 {
		return objects[0].document()
	}
	return genericListOf(objects)
}

func genericListOf(objects []object) genericList {
	l := genericList{Kind: "List", APIVersion: api.APIVersion, Items: []any{}}
	for _, o := range objects {
		l.Items = append(l.Items, o.document())
	}
	return l
}

// genericList holds objects of any kind, as kubectl prints them.
type genericList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []any  `json:"items"`
}
