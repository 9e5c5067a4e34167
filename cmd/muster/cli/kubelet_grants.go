package cli

import (
	"context"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// This file shows the grants of kubelets: they are no objects, have no name and are in no
// namespace of Muster.

// ofKubelets is the value of --origin for the grants of kubelets.
const ofKubelets = "kubelet"

// checkOrigin refuses --origin beside flags that select objects. A namespace that was given is
// refused too: it would be taken for the pods' namespace, which is not one of Muster.
func (f *getFlags) checkOrigin(a *app, groups []group, namespaceGiven bool) error {
	switch {
	case f.origin == "":
		return nil
	case f.origin != ofKubelets:
		return usagef("--origin %q: want %s", f.origin, ofKubelets)
	case len(groups) > 1 || groups[0].kind != allocationKind || len(groups[0].names) > 0:
		return usagef("--origin is for all allocations: muster get allocations --origin %s", ofKubelets)
	case f.list != (sdk.ListOptions{}) || f.on() || a.sortBy.path != nil || a.output == "name", namespaceGiven, f.ignoreNotFound, a.showLabels:
		return usagef("--origin and -n, -l, --field-selector, --limit, --sort-by, --show-labels, --ignore-not-found, -w or -o name exclude each other")
	}
	return nil
}

// kubeletGrants shows the devices in the pools of all kubelets, a line for each container.
func (a *app) kubeletGrants(ctx context.Context) error {
	got, err := a.client.Nodes().KubeletGrants(ctx)
	if err != nil {
		return err
	}
	if got.Hidden > 0 {
		a.notef("%d nodes have a pool that is not shown: it takes a role in the whole cluster, and a report of the node's agent\n", got.Hidden)
	}
	switch {
	case a.columns != nil:
		var items []any
		for _, g := range got.Items {
			items = append(items, g)
		}
		return a.customColumns(items)
	case !a.isTable():
		items := []any{}
		for _, g := range got.Items {
			items = append(items, g)
		}
		return a.encode(genericList{Kind: "List", APIVersion: api.APIVersion, Items: items})
	case len(got.Items) == 0:
		a.notef("no kubelet has a device of Muster\n")
		return nil
	}
	a.kubeletGrantTable(got.Items).write(a.Stdout, "")
	if got.More > 0 {
		a.printf("%d more containers have devices\n", got.More)
	}
	return nil
}

func (a *app) kubeletGrantTable(grants []sdk.KubeletGrant) *table {
	t := &table{}
	if !a.noHeaders {
		t = newTable("NODE", "DEVICE", "STATE", "NAMESPACE", "POD", "CONTAINER", "SINCE")
	}
	for _, g := range grants {
		containers := g.Containers
		if len(containers) == 0 {
			containers = []api.KubeletContainer{{}}
		}
		for _, c := range containers {
			device := g.Device
			if c.Unit != "" {
				device = c.Unit // a share has a name of its own
			}
			t.add(g.Node, device, g.State, c.Namespace, c.Pod, c.Container, g.Since)
		}
	}
	return t
}
