package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// nodeSelection is which nodes a verb that changes nodes is for.
type nodeSelection struct {
	names    []string
	all      bool
	selector string
}

func (s *nodeSelection) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.all, "all", false, "every node")
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "nodes whose labels match, e.g. zone=a,tier!=y")
}

// isChange distinguishes changes ("key=value", "key:NoSchedule", "key-") from
// names, which have no '=' and no ':' and do not end in '-'.
func isChange(arg string) bool { return strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-") }

// parse reads "node NAME… CHANGE…" and returns the changes.
func (s *nodeSelection) parse(args []string) ([]string, error) {
	at := 0
	for at < len(args) && !isChange(args[at]) {
		at++
	}
	k, names, err := parseTargets(args[:at])
	changes := args[at:]
	switch {
	case err != nil:
		return nil, err
	case k != nodeKind:
		return nil, usagef("%q: this kind cannot be changed so", args[0])
	case len(changes) == 0:
		return nil, usagef("nothing to change: want changes behind the names")
	case len(names) == 0 && !s.all && s.selector == "":
		return nil, usagef("name the nodes, or give -l or --all")
	case len(names) > 0 && (s.all || s.selector != ""), s.all && s.selector != "":
		return nil, usagef("names, -l and --all exclude each other")
	}
	for _, c := range changes {
		if !isChange(c) {
			return nil, usagef("%q: names stand before the changes", c)
		}
	}
	s.names = names
	return changes, nil
}

// resolve returns the names of the nodes.
func (a *app) resolve(ctx context.Context, s nodeSelection) ([]string, error) {
	if len(s.names) > 0 {
		return s.names, nil
	}
	list, err := a.client.Nodes().List(ctx, sdk.ListOptions{LabelSelector: s.selector})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		s.names = append(s.names, list.Items[i].Metadata.Name)
	}
	if len(s.names) == 0 {
		a.notef("no nodes found\n")
	}
	return s.names, nil
}

// nodeEdit returns the patch of a node and the word for it, such as "labeled". A
// zero patch changes nothing. The node itself must stay as it is.
type nodeEdit func(*api.Node) (patch api.NodePatch, done string, err error)

// editAttempts bounds how often a change is computed anew because the node
// changed at the same time.
const editAttempts = 8

// edit changes nodes one by one; a failure at one node does not stop the others.
func (a *app) edit(ctx context.Context, verb string, s nodeSelection, how nodeEdit) error {
	if err := a.connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	names, err := a.resolve(ctx, s)
	if err != nil {
		return err
	}
	var failures []error
	var shown []object
	for _, name := range names {
		n, done, err := a.editOne(ctx, name, how)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s node %s: %w", verb, name, err))
			continue
		}
		shown = append(shown, objectOf(api.KindNode, n))
		if a.isTable() {
			a.printf("node %q %s\n", name, done)
		}
	}
	if !a.isTable() && len(shown) > 0 {
		failures = append(failures, a.print(shown, listOf(shown)))
	}
	return errors.Join(failures...)
}

// editOne changes a node as it is seen, and looks again where it has changed
// since.
func (a *app) editOne(ctx context.Context, name string, how nodeEdit) (*api.Node, string, error) {
	for attempt := 1; ; attempt++ {
		n, err := a.client.Nodes().Get(ctx, name)
		if err != nil {
			return nil, "", err
		}
		patch, done, err := how(n)
		if err != nil {
			return nil, "", err
		}
		if patch.IsZero() {
			return n, "not changed", nil
		}
		patch.ResourceVersion = n.Metadata.ResourceVersion
		changed, err := a.client.Nodes().Patch(ctx, name, patch)
		var status *api.Status
		if errors.As(err, &status) && status.Code == http.StatusConflict && attempt < editAttempts {
			continue
		}
		return changed, done, err
	}
}
